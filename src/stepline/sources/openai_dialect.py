"""`POST /v1/completions` as OpenAI-compatible servers take it, with the extensions that make it exact."""

from typing import Any

import msgspec

from stepline.sources.load.dialect import Ask, Delta


class _Usage(msgspec.Struct, gc=False):
    completion_tokens: int | None = None
    prompt_tokens: int | None = None
    prompt_tokens_details: Any = None


class _Choice(msgspec.Struct, gc=False):
    text: str | None = None
    finish_reason: Any = None
    token_ids: list[int] | None = None


class _Event(msgspec.Struct, gc=False):
    choices: list[_Choice] = []
    usage: _Usage | None = None
    error: Any = None


class Completions:
    """Text or ids in, one choice out.

    With `running_usage` the server is asked for cumulative usage in every event (vLLM, SGLang from 0.5.4);
    without it only the last event tells the total and events can merely be counted. `extensions` allows
    `ignore_eos` and `min_tokens`, which plain servers answer with 400.
    """

    name = "/v1/completions"
    path = "/v1/completions"
    _decode = staticmethod(
        msgspec.json.Decoder(_Event).decode
    )  # of the class: instances go to other processes

    def __init__(self, model: str, *, takes_ids: bool, running_usage: bool, extensions: bool) -> None:
        self._model = model
        self.takes_ids = takes_ids
        self.exact = running_usage
        self._extensions = extensions

    def body(self, ask: Ask) -> bytes:
        """A streamed request for `output_tokens`; only with extensions is the answer sure to be that long."""
        prompt: object = ask.prompt_ids if self.takes_ids and ask.prompt_ids else ask.prompt_text
        options: dict[str, object] = {"include_usage": True}
        if self.exact:
            options["continuous_usage_stats"] = True
        body: dict[str, object] = {
            **ask.sampling,
            "model": self._model,
            "prompt": prompt,
            "max_tokens": ask.output_tokens,
            "temperature": ask.temperature,
            "stream": True,
            "stream_options": options,
        }
        if self._extensions:
            body |= {"ignore_eos": True, "min_tokens": ask.output_tokens}
        return msgspec.json.encode(body)

    def count(self, event: bytes) -> int | None:
        """Of an event in the middle of an answer, where the server was asked for cumulative usage."""
        if event == b"[DONE]":
            return None
        content = self._decode(event)
        usage, choices = content.usage, content.choices
        if usage is None or not choices or content.error is not None:
            return None
        return usage.completion_tokens if choices[0].text and not choices[0].finish_reason else None

    def read(self, event: bytes) -> Delta | None:
        """One event; None for `[DONE]`."""
        if event == b"[DONE]":
            return None
        content = self._decode(event)
        if content.error is not None:
            return Delta(error=str(content.error)[:200])
        usage, choice = content.usage, content.choices[0] if content.choices else None
        if usage is None and choice is None:
            return None
        details = None if usage is None else usage.prompt_tokens_details
        cached = details.get("cached_tokens") if isinstance(details, dict) else None
        return Delta(
            tokens=None if usage is None else usage.completion_tokens,
            more_tokens=len(choice.token_ids) if choice and choice.token_ids else None,
            text=bool(choice and choice.text),
            prompt_tokens=None if usage is None else usage.prompt_tokens,
            cached_tokens=cached if isinstance(cached, int) else None,
            finish=str(choice.finish_reason) if choice and choice.finish_reason else None,
        )

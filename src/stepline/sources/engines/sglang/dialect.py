"""SGLang's native `POST /generate`: exact, because every event repeats how many tokens were made so far."""

from typing import Any

import msgspec

from stepline.sources.load.dialect import Ask, Delta


class _Meta(msgspec.Struct, gc=False):
    completion_tokens: int | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    finish_reason: Any = None


class _Event(msgspec.Struct, gc=False):
    """`meta_info` of 0.4.1 to 0.5.23; an `error` takes its place when the scheduler refuses the request."""

    meta_info: _Meta | None = None
    error: Any = None


class NativeGenerate:
    """`completion_tokens` is cumulative whatever an event holds (engine-side batching, speculation)."""

    name = "native /generate"
    path = "/generate"
    takes_ids = True
    exact = True

    _decode = staticmethod(
        msgspec.json.Decoder(_Event).decode
    )  # of the class: instances go to other processes

    def body(self, ask: Ask) -> bytes:
        """Exactly `output_tokens` long. `ignore_eos` makes the scheduler reserve all of them at once."""
        own = {"max_new_tokens": ask.output_tokens, "ignore_eos": True, "temperature": ask.temperature}
        sampling = ask.sampling | own
        prompt: dict[str, object] = (
            {"input_ids": ask.prompt_ids} if ask.prompt_ids else {"text": ask.prompt_text}
        )
        return msgspec.json.encode(prompt | {"sampling_params": sampling, "stream": True})

    def count(self, event: bytes) -> int | None:
        """Of an event in the middle of an answer."""
        if event == b"[DONE]":
            return None
        content = self._decode(event)
        meta = content.meta_info
        if meta is None or meta.finish_reason is not None or content.error is not None:
            return None
        return meta.completion_tokens

    def read(self, event: bytes) -> Delta | None:
        """One event; None for `[DONE]`."""
        if event == b"[DONE]":
            return None
        content = self._decode(event)
        if content.error is not None:
            return Delta(error=str(content.error)[:200])
        meta = content.meta_info
        if meta is None:
            return None
        finish = meta.finish_reason
        return Delta(
            tokens=meta.completion_tokens,
            prompt_tokens=meta.prompt_tokens,
            cached_tokens=meta.cached_tokens,
            finish=None
            if finish is None
            else str(finish.get("type") if isinstance(finish, dict) else finish),
        )

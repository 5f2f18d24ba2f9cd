"""Answers of SGLang's generation routes, streamed and whole.

Texts and ids are cumulative in `/generate`, as they are without `--incremental-streaming-output`; so is the count.
"""

import time

from stepline.lab.sim.http import Reply
from stepline.lab.sim.prompt import Request

_WORD = " lorem"
_ID = 8


class GenerateAnswer:
    """One answer of `/generate`."""

    def __init__(self, reply: Reply, request: Request, *, stream: bool) -> None:
        self._reply, self._request, self._stream = reply, request, stream
        self._text, self._ids = bytearray(), bytearray()

    def begin(self) -> None:
        """The status goes out before the first token."""
        if self._stream:
            self._reply.stream()

    def tokens(self, new: int, at_s: float, made: int, *, last: bool) -> None:
        """`new` more tokens left at `at_s` of the engine's clock, `made` in all."""
        self._text += _WORD.encode() * new
        self._ids += f",{_ID}".encode() * new
        if self._stream:
            self._reply.chunk(b"data: " + self._body(at_s, made, last=last) + b"\n\n")
            if last:
                self._reply.chunk(b"data: [DONE]\n\n")
                self._reply.finish()
        elif last:
            self._reply.send(200, self._body(at_s, made, last=True))

    def _body(self, at_s: float, made: int, *, last: bool) -> bytes:
        one = self._request
        reason = f'{{"type":"length","length":{made}}}' if last else "null"
        end = ""
        if last:
            end = f',"e2e_latency":{at_s - one.arrival_s:.6f},"spec_verify_ct":{one.steps - 1}'
        meta = (
            f'"meta_info":{{"id":"{one.rid}","finish_reason":{reason},"prompt_tokens":{one.prompt.tokens},'
            f'"weight_version":"default","num_retractions":{one.retractions},"completion_tokens":{made},'
            f'"cached_tokens":{one.cached}{end}}}'
        )
        return b'{"text":"%b","output_ids":[%b],%b}' % (
            bytes(self._text),
            bytes(self._ids[1:]),
            meta.encode(),
        )


class CompletionAnswer:
    """One answer of `/v1/completions`."""

    def __init__(
        self, reply: Reply, request: Request, *, model: str, stream: bool, usage: bool, usage_always: bool
    ) -> None:
        self._reply, self._request, self._stream = reply, request, stream
        self._usage, self._always = usage, usage_always
        self._head = (
            f'"id":"{request.rid}","object":"text_completion","created":{int(time.time())},"model":"{model}"'
        )

    def begin(self) -> None:
        """The status goes out before the first token."""
        if self._stream:
            self._reply.stream()

    def tokens(self, new: int, at_s: float, made: int, *, last: bool) -> None:  # noqa: ARG002
        """`new` more tokens, `made` in all."""
        usage = f',"usage":{self._used(made)}'
        reason = '"length"' if last else "null"
        if not self._stream:
            if last:
                choice = self._choice(made, '"length"')
                self._reply.send(200, f'{{{self._head},"choices":[{choice}]{usage}}}'.encode())
            return
        choice = self._choice(new, reason)
        shown = usage if self._always else ',"usage":null'
        self._reply.chunk(f'data: {{{self._head},"choices":[{choice}]{shown}}}\n\n'.encode())
        if last:
            if self._usage:
                self._reply.chunk(f'data: {{{self._head},"choices":[]{usage}}}\n\n'.encode())
            self._reply.chunk(b"data: [DONE]\n\n")
            self._reply.finish()

    def _choice(self, tokens: int, reason: str) -> str:
        text = _WORD * tokens
        return f'{{"index":0,"text":"{text}","logprobs":null,"finish_reason":{reason},"matched_stop":null}}'

    def _used(self, made: int) -> str:
        prompt = self._request.prompt.tokens
        return (
            f'{{"prompt_tokens":{prompt},"total_tokens":{prompt + made},"completion_tokens":{made},'
            '"prompt_tokens_details":null,"reasoning_tokens":0}'
        )

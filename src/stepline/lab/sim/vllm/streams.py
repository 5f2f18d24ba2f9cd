"""Answers of vLLM's `/v1/completions`, streamed and whole."""

import time

import msgspec

from stepline.lab.sim.http import Reply
from stepline.lab.sim.prompt import Request

_WORD = " lorem"
_ID = 8


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What a completion was asked to tell besides its text."""

    model: str
    stream: bool
    usage: bool
    usage_always: bool
    token_ids: bool
    prompt_ids: tuple[int, ...]


class CompletionAnswer:
    """One answer."""

    def __init__(self, reply: Reply, request: Request, options: Options) -> None:
        self._reply, self._request, self._options = reply, request, options
        self._head = (
            f'"id":"cmpl-{request.rid}","object":"text_completion","created":{int(time.time())},'
            f'"model":"{options.model}"'
        )
        self._first = True

    def begin(self) -> None:
        """The status goes out before the first token."""
        if self._options.stream:
            self._reply.stream()

    def tokens(self, new: int, made: int, *, last: bool) -> None:
        """`new` more tokens, `made` in all."""
        usage = f'"usage":{self._used(made)}'
        if not self._options.stream:
            if last:
                self._reply.send(
                    200, f'{{{self._head},"choices":[{self._choice(made, last=True)}],{usage}}}'.encode()
                )
            return
        shown = f",{usage}" if self._options.usage and self._options.usage_always else ""
        choice = self._choice(new, last=last)
        self._first = False
        self._reply.chunk(f'data: {{{self._head},"choices":[{choice}]{shown}}}\n\n'.encode())
        if last:
            if self._options.usage:
                self._reply.chunk(f'data: {{{self._head},"choices":[],{usage}}}\n\n'.encode())
            self._reply.chunk(b"data: [DONE]\n\n")
            self._reply.finish()

    def _choice(self, tokens: int, *, last: bool) -> str:
        reason = '"length"' if last else "null"
        ids = ""
        if self._options.token_ids:
            prompt = msgspec.json.encode(self._options.prompt_ids).decode() if self._first else "null"
            made = ",".join([str(_ID)] * tokens)
            ids = f',"prompt_token_ids":{prompt},"token_ids":[{made}]'
        text = _WORD * tokens
        return (
            f'{{"index":0,"text":"{text}","logprobs":null,"finish_reason":{reason},"stop_reason":null{ids}}}'
        )

    def _used(self, made: int) -> str:
        prompt = self._request.prompt.tokens
        return f'{{"prompt_tokens":{prompt},"total_tokens":{prompt + made},"completion_tokens":{made}}}'

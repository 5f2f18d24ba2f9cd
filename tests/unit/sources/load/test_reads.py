"""An answer is the same however its bytes are cut into reads and its body into chunks."""

import asyncio
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepline.sources.engines.sglang.dialect import NativeGenerate
from stepline.sources.load.answer import Answer, Counters
from stepline.sources.load.connection import Connection
from stepline.sources.load.dialect import Ask, Dialect
from stepline.sources.load.pace import Pace
from stepline.sources.load.sse import events_of_whole_chunks
from stepline.sources.openai_dialect import Completions
from tests.unit.sources.load.servers import CHUNKED, chunk

TOKENS = 24
LAST = b"0\r\n\r\n"


class Transport(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.aborted = False

    def write(self, data: Any) -> None:
        """To nobody."""

    def is_closing(self) -> bool:
        return self.aborted

    def abort(self) -> None:
        self.aborted = True


def native(tokens: int) -> bytes:
    finish = b'{"type":"length"}' if tokens == TOKENS else b"null"
    return (
        b'data: {"text":"na\xc3\xafve \xe6\xbc\xa2","meta_info":{"finish_reason":%b,"completion_tokens":%d}}\n\n'
        % (
            finish,
            tokens,
        )
    )


def openai(tokens: int) -> bytes:
    finish = b'"length"' if tokens == TOKENS else b"null"
    return (
        b'data: {"choices":[{"text":"\xe6\xbc\xa2 ","finish_reason":%b}],"usage":{"completion_tokens":%d}}\n\n'
        % (finish, tokens)
    )


DIALECTS: dict[str, tuple[Dialect, Any]] = {
    "native": (NativeGenerate(), native),
    "openai": (Completions("m", takes_ids=True, running_usage=True, extensions=True), openai),
}


def hear(dialect: Dialect, reads: list[bytes]) -> Answer:
    """What a connection makes of these reads."""
    answer = Answer(Ask(output_tokens=TOKENS), 0, 0.0, Counters())

    async def feed() -> None:
        connection = Connection(dialect, Pace(Counters()))
        connection.connection_made(Transport())
        connection.send(b"", answer, asyncio.get_running_loop().create_future())
        for read in reads:
            connection.data_received(read)
            if answer.end is not None:
                return

    asyncio.run(feed())
    return answer


def cut(body: bytes, places: list[int]) -> list[bytes]:
    edges = sorted({0, len(body), *(place % len(body) for place in places)})
    return [body[low:high] for low, high in pairwise(edges)]


PLACES = st.lists(st.integers(min_value=0, max_value=10_000), max_size=40)


@pytest.mark.parametrize("name", DIALECTS)
@given(reads=PLACES, chunks=PLACES, pings=st.sets(st.integers(min_value=1, max_value=TOKENS)))
def test_any_cut_into_chunks_and_reads_gives_the_same_counts(
    name: str, reads: list[int], chunks: list[int], pings: set[int]
) -> None:
    dialect, make = DIALECTS[name]
    events = [b": ping\r\n\r\n" * (n in pings) + make(n) for n in range(1, TOKENS + 1)]
    body = b"".join(events) + b"data: [DONE]\n\n"
    answer = hear(dialect, cut(CHUNKED + b"".join(map(chunk, cut(body, chunks))) + LAST, reads))
    assert (answer.end, answer.total, sum(answer.tokens)) == ("ok", TOKENS, TOKENS)
    assert answer.text_events <= TOKENS


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize("together", [1, 2, 5])
@pytest.mark.parametrize("per_event", [1, 3, 8])
def test_whole_chunks_in_a_read_are_counted_exactly(name: str, together: int, per_event: int) -> None:
    dialect, make = DIALECTS[name]
    chunks = [chunk(make(n)) for n in range(per_event, TOKENS + 1, per_event)]
    reads = [b"".join(chunks[at : at + together]) for at in range(0, len(chunks), together)]
    answer = hear(dialect, [CHUNKED, *reads, LAST])
    assert (answer.end, answer.total, len(answer.times)) == ("ok", TOKENS, len(reads))
    assert sum(answer.tokens) == TOKENS


@pytest.mark.parametrize(
    "wrong",
    [
        b"data: {\n\n",
        b'data: {"meta_info":{"completion_tokens":"3"}}\n\n',
        b'data: {"meta_info":\ndata: x}\n\n',
        b'data: {"meta_info":{"completion_tokens":3,\n"finish_reason":null}}\n\n',
        b'data: {"meta_info":{"completion_tokens":3,\r"finish_reason":null}}\n\n',
    ],
)
@pytest.mark.parametrize("alone", [True, False])
def test_a_broken_event_is_garbled_wherever_it_stands(wrong: bytes, *, alone: bool) -> None:
    first, broken = chunk(native(1)), chunk(wrong)
    reads = [first, chunk(native(2)), broken] if alone else [first, chunk(native(2)) + broken]
    assert hear(NativeGenerate(), [CHUNKED, *reads]).end == "garbled"


@pytest.mark.parametrize("size", [b"%x" % 200, b"-5", b"0x1", b"", b"zz"])
def test_a_chunk_of_another_size_is_left_to_the_parser(size: bytes) -> None:
    event = native(2)
    assert events_of_whole_chunks(size + b"\r\n" + event + b"\r\n") is None
    right = chunk(event)
    assert events_of_whole_chunks(right + right) == [event[6:-2]] * 2
    assert events_of_whole_chunks(right + LAST) is None


def test_a_count_that_falls_is_told_also_in_a_read_of_its_own() -> None:
    reads = [chunk(native(n)) for n in (1, 2, 3, 2)]
    answer = hear(NativeGenerate(), [CHUNKED, *reads])
    assert (answer.end, answer.words) == ("miscounted", "a count fell from 3 to 2 tokens")

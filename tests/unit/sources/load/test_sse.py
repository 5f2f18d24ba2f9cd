"""Events come out the same however a body is cut into reads."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepline.sources.load.sse import MAX_EVENT_BYTES, EventSplitter, EventTooLong

LINES = st.lists(
    st.sampled_from(
        [b"data: {}", b"data:x", b"data", b"data:", b": ping", b"event: e", b"id: 1", b"", b"data:  y"]
    ),
    max_size=12,
)


def grammar(body: bytes) -> list[bytes]:
    """The WHATWG grammar, read off line by line over the whole body."""
    events: list[bytes] = []
    data: list[bytes] = []
    *lines, _unended = body.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    for line in lines:
        if not line and data:
            events.append(b"\n".join(data))
            data = []
        if line.startswith(b"data:"):
            data.append(line[5:].removeprefix(b" "))
    return events


@given(
    lines=LINES,
    ends=st.lists(st.sampled_from([b"\n", b"\r\n", b"\r"]), min_size=12, max_size=12),
    data=st.data(),
)
def test_any_cut_gives_the_grammars_events(
    lines: list[bytes], ends: list[bytes], data: st.DataObject
) -> None:
    body = b"".join(line + end for line, end in zip(lines, ends, strict=False))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=6)))
    splitter = EventSplitter()
    found = []
    for start, stop in zip([0, *cuts], [*cuts, len(body)], strict=True):
        found += splitter.feed(body[start:stop])
    # A last CR may be the first half of CRLF, and an LF after it no line of its own: both readings end the line.
    assert found == grammar(body)


def test_byte_by_byte_up_to_the_bound_takes_linear_time() -> None:
    body = b"data: " + b"x" * (MAX_EVENT_BYTES // 4) + b"\n\n"
    splitter, found = EventSplitter(), []
    start = time.process_time()
    for index in range(len(body)):
        found += splitter.feed(body[index : index + 1])
    assert found == [body[6:-2]]
    assert time.process_time() - start < 5, "a quarter of a million pieces: seconds, not hours"


@pytest.mark.parametrize("piece_bytes", [1 << 16, 1 << 22])
def test_an_event_beyond_the_bound_is_refused(piece_bytes: int) -> None:
    splitter = EventSplitter()
    body = b"data: " + b"x" * (2 * MAX_EVENT_BYTES) + b"\n\n"
    pieces = (body[start : start + piece_bytes] for start in range(0, len(body), piece_bytes))
    with pytest.raises(EventTooLong):
        list(map(splitter.feed, pieces))

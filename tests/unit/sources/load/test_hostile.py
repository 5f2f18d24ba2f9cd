"""Servers that fail, hang, lie or send rubbish: every fault is counted under its name, and no level hangs."""

import asyncio
import ssl
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import uvloop

from stepline.sources.load.dialect import Dialect
from stepline.sources.load.drive import run_level
from stepline.sources.load.level import Address, Failures, LevelPlan, LevelResult
from tests.unit.sources.load.servers import (
    CHUNKED,
    Handle,
    NativeDialect,
    PlainDialect,
    Request,
    chunk,
    event,
    serving,
    streaming,
)

END = chunk(b"data: [DONE]\n\n") + chunk(b"")


def level(
    handle: Handle,
    *,
    dialect: Dialect | None = None,
    seconds: float = 0.5,
    check: Callable[..., None] | None = None,
    **plan: Any,
) -> LevelResult:
    """Drive a short level against a server and check that it took its time and no more."""
    wanted = LevelPlan(
        **{"concurrency": 2, "input_tokens": 8, "output_tokens": 8, "seconds": seconds, "stall_s": 0.2} | plan
    )

    async def drive() -> LevelResult:
        async with serving(handle) as (server, address):
            result = await run_level(address, dialect or NativeDialect(), wanted)
            if check is not None:
                await asyncio.sleep(0.05)
                check(server)
        return result

    start = time.monotonic()
    result = uvloop.run(drive())
    assert time.monotonic() - start < seconds + 2
    return result


def only(failures: Failures, kind: str) -> int:
    """The count of a kind, all others being zero."""
    kinds = ("refused", "closed", "garbled", "hung", "miscounted", "error")
    assert not [other for other in kinds if other != kind and getattr(failures, other)], failures
    if kind != "status":
        assert not failures.status
    return sum(failures.status.values()) if kind == "status" else int(getattr(failures, kind))


def writes(*parts: bytes, close: bool = False, then_hang: bool = False) -> Handle:
    async def handle(_request: Request, writer: asyncio.StreamWriter) -> None:
        for part in parts:
            writer.write(part)
        await writer.drain()
        if close:
            writer.close()
        if then_hang:
            await asyncio.sleep(60)

    return handle


def test_500s_end_the_level_early_with_the_servers_words() -> None:
    body = b'{"message": "out of <b>memory</b>\\n"}' + b"x" * 5000
    answer = b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    start = time.monotonic()
    result = level(writes(answer), seconds=20)
    assert time.monotonic() - start < 3, "nothing would come of the rest"
    assert only(result.failures, "status") == result.level.failed
    assert set(result.failures.status) == {500}
    assert result.failures.first is not None
    assert result.failures.first.startswith('status: status 500: {"message": "out of <b>memory</b>')
    assert len(result.failures.first) <= 200
    assert result.level.requests == 0
    assert result.level.tok_s is None
    assert result.level.ttft_ms is None
    assert result.stretches == ()


def test_a_fault_that_never_ends_is_still_its_status() -> None:
    result = level(writes(b"HTTP/1.1 503 Busy\r\nContent-Length: 100\r\n\r\nbusy", then_hang=True), seconds=1)
    assert result.failures.status[503] > 0
    assert result.failures.hung == 0


def test_an_endless_fault_is_still_its_status() -> None:
    head = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 10000000\r\n\r\n"
    result = level(writes(head, b"<html>" + b"x" * 1_000_000, then_hang=True))
    assert only(result.failures, "status") >= 2
    assert result.failures.status.keys() == {502}


@pytest.mark.parametrize("opening", [b"", CHUNKED, CHUNKED + chunk(event(1)) + chunk(event(2))])
def test_a_hanging_stream_is_given_up(opening: bytes) -> None:
    result = level(writes(opening, then_hang=True), seconds=1)
    assert only(result.failures, "hung") >= 2
    assert result.failures.first == "hung: nothing came for 0.2 s"


def test_nobody_listens() -> None:
    async def drive() -> LevelResult:
        plan = LevelPlan(concurrency=2, input_tokens=8, output_tokens=8, seconds=0.5)
        async with serving(streaming()) as (_, address):
            pass
        return await run_level(address, NativeDialect(), plan)

    failures = asyncio.run(drive()).failures
    assert only(failures, "refused") >= 2
    assert failures.first is not None
    assert failures.first.startswith("refused: ")


def test_an_impossible_name_is_refused() -> None:
    plan = LevelPlan(concurrency=2, input_tokens=8, output_tokens=8, seconds=0.5)
    address = Address(host="a" * 70 + ".invalid", port=1)
    result = asyncio.run(run_level(address, NativeDialect(), plan))
    assert only(result.failures, "refused") >= 2


def test_a_server_that_closes_at_once_or_before_its_end() -> None:
    closing = level(writes(close=True))
    assert only(closing.failures, "closed") >= 2
    middle = level(writes(CHUNKED, chunk(event(1)), chunk(event(2)), close=True))
    assert only(middle.failures, "closed") >= 2
    assert middle.failures.first == "closed: closed after 2 tokens"


def test_a_whole_response_without_a_finish_is_no_answer() -> None:
    result = level(writes(CHUNKED, chunk(event(1)), END))
    assert only(result.failures, "closed") >= 2
    assert result.failures.first == "closed: the stream ended after 1 tokens without a finish"


@pytest.mark.parametrize(
    "body",
    [
        b"data: {broken\n\n",
        b'data: {"meta_info": 3}\n\n',
        b"data: \xff\xfe\n\n",
        b'data: {"text": "\xff"}\n\n',
        b"data: " + b"[" * 100_000 + b"\n\n",
        b"data: " + b"x" * 3_000_000,
    ],
    ids=["no JSON", "another type", "no UTF-8", "no UTF-8 inside", "nested", "endless event"],
)
def test_broken_events_are_garbled(body: bytes) -> None:
    result = level(writes(CHUNKED, chunk(event(1)), chunk(body), then_hang=True))
    assert only(result.failures, "garbled") >= 2


@pytest.mark.parametrize(
    "raw",
    [
        b"not HTTP at all\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 1_000_000,
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 100_000,
        CHUNKED + chunk(event(1)) + b"zz\r\n",
        CHUNKED + chunk(event(1)) + b"0\r\nTrailer: " + b"y" * 1_000_000,
    ],
    ids=["no HTTP", "endless header", "endless headers", "no chunk size", "endless trailer"],
)
def test_broken_http_is_garbled(raw: bytes) -> None:
    assert only(level(writes(raw, then_hang=True)).failures, "garbled") >= 2


def test_an_error_inside_a_stream_is_the_engines() -> None:
    broken = b'data: {"error": "the scheduler died"}\n\n'
    result = level(writes(CHUNKED, chunk(event(1)), chunk(broken), then_hang=True))
    assert only(result.failures, "error") >= 2
    assert result.failures.first == "error: the scheduler died"


@pytest.mark.parametrize(
    "events",
    [
        [event(1), event(2), event(1), event(8, "length")],
        [event(1), event(100_000, "length")],
        [event(0), *[event(1)] * 9, event(1, "length")],
    ],
    ids=["falling", "more than asked", "more texts than tokens"],
)
def test_a_running_count_that_cannot_be_is_miscounted(events: list[bytes]) -> None:
    result = level(writes(CHUNKED, *map(chunk, events), END))
    assert only(result.failures, "miscounted") >= 2
    assert result.level.tok_s is None
    assert result.stretches == ()


def plain(text: str, *, ids: int | None = None, finish: str | None = None) -> bytes:
    choice: dict[str, Any] = {"text": text, "finish_reason": finish}
    if ids is not None:
        choice["token_ids"] = list(range(ids))
    return chunk(b"data: " + msgspec.json.encode({"choices": [choice]}) + b"\n\n")


def usage(tokens: int) -> bytes:
    return chunk(b'data: {"choices": [], "usage": {"completion_tokens": %d}}\n\n' % tokens)


def test_a_usage_that_contradicts_the_events_is_miscounted() -> None:
    texts = [plain("x") for _ in range(7)] + [plain("x", finish="length")]
    for lie in (2, 0, 1000):
        result = level(writes(CHUNKED, *texts, usage(lie), END), dialect=PlainDialect())
        assert only(result.failures, "miscounted") >= 2, lie
    ids = [plain("x", ids=4), plain("x", ids=4, finish="length")]
    result = level(writes(CHUNKED, *ids, usage(7), END), dialect=PlainDialect())
    assert only(result.failures, "miscounted") >= 2


def test_tokens_are_counted_by_the_best_that_the_server_says() -> None:
    ids = [plain("x", ids=3), plain("", ids=4), plain("x", ids=1, finish="length")]
    texts = [plain("x"), plain("x"), plain("x"), plain("x", finish="length")]
    for events, tokens in ((ids, 8), ([*ids, usage(8)], 8), (texts, 4), ([*texts, usage(8)], 8)):
        result = level(writes(CHUNKED, *events, END), dialect=PlainDialect())
        assert result.failures.first is None
        assert result.level.output_tokens == tokens
        assert result.level.input_tokens is None, "words are no tokens"


@pytest.mark.parametrize("per_event", [1, 3, 8])
def test_counts_are_exact_with_several_tokens_an_event(per_event: int) -> None:
    result = level(streaming(gap_s=0.002, per_event=per_event), output_tokens=48, concurrency=1)
    assert result.failures.first is None
    assert result.level.output_tokens == 48
    assert result.level.chunk_gap_ms is not None
    assert result.level.itl_ms is not None
    assert result.level.chunk_gap_ms / result.level.itl_ms == pytest.approx(per_event, rel=0.1)


def test_an_answer_that_comes_byte_by_byte() -> None:
    async def handle(_request: Request, writer: asyncio.StreamWriter) -> None:
        answer = CHUNKED + b"".join(chunk(event(n, "length" if n == 4 else None)) for n in range(1, 5)) + END
        for index in range(len(answer)):
            writer.write(answer[index : index + 1])
            await writer.drain()
            await asyncio.sleep(0)

    result = level(handle, output_tokens=4, concurrency=1)
    assert result.failures.first is None
    assert result.level.output_tokens == 4


@pytest.mark.parametrize("head", [b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.0 200 OK\r\n\r\n"])
def test_a_body_may_end_with_the_connection(head: bytes) -> None:
    crlf = b"".join(event(n, "length" if n == 8 else None) for n in range(1, 9)).replace(b"\n", b"\r\n")
    result = level(writes(head, b": hello\r\n\r\n", crlf, close=True))
    assert result.failures.first is None
    assert result.level.requests


def test_a_connection_closed_between_requests_is_no_failure() -> None:
    async def handle(request: Request, writer: asyncio.StreamWriter) -> None:
        await streaming(ttft_s=0.0, gap_s=0.0)(request, writer)
        if request.number % 3 == 0:  # the client may send its next request before it hears of this
            writer.close()

    opened: list[int] = []
    result = level(handle, check=lambda server: opened.append(server.connections))
    assert result.failures.first is None
    assert result.level.requests
    assert opened[0] > 2


def test_interim_answers_and_a_closing_header_are_understood() -> None:
    answer = b"".join(chunk(event(n, "length" if n == 8 else None)) for n in range(1, 9)) + END
    head = CHUNKED.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    result = level(writes(b"HTTP/1.1 100 Continue\r\n\r\n", head, answer))
    assert result.failures.first is None
    assert result.level.requests


def test_ipv6() -> None:
    async def drive(host: str) -> LevelResult:
        plan = LevelPlan(concurrency=1, input_tokens=8, output_tokens=8, seconds=0.3)
        async with serving(streaming(), host="::1") as (server, address):
            named = Address(host=host, port=address.port, headers=(("Authorization", "Bearer k"),))
            result = await run_level(named, NativeDialect(), plan)
            head = server.requests[0].head
            assert f"Host: [::1]:{address.port}\r\n".encode() in head
            assert b"Authorization: Bearer k\r\n" in head
        return result

    for host in ("::1", "[::1]"):
        try:
            result = asyncio.run(drive(host))
        except OSError as error:
            pytest.skip(f"no IPv6 here: {error}")
        assert result.failures.first is None
        assert result.level.requests


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for localhost that signs itself, with its key."""
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    made = subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=localhost",
            "-addext",
            "subjectAltName=DNS:localhost",
            "-keyout",
            str(path) + ".key",
            "-out",
            str(path),
        ],
        capture_output=True,
        check=False,
    )
    if made.returncode:
        pytest.skip("needs openssl")
    return path


@pytest.mark.parametrize("trusted", [False, True])
def test_tls(certificate: Path, monkeypatch: pytest.MonkeyPatch, *, trusted: bool) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, str(certificate) + ".key")
    if trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))

    async def drive() -> LevelResult:
        plan = LevelPlan(concurrency=2, input_tokens=8, output_tokens=8, seconds=0.5)
        async with serving(streaming(), tls=context) as (_, address):
            named = Address(host="localhost", port=address.port, tls=True)
            return await run_level(named, NativeDialect(), plan)

    result = asyncio.run(drive())
    if trusted:
        assert result.failures.first is None
        assert result.level.requests
    else:
        assert only(result.failures, "refused") >= 2
        assert result.failures.first is not None
        assert "certificate verify failed" in result.failures.first.lower()

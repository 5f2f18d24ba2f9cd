"""One small request at a time, for what is not load: discovery, metrics, profiler and cache routes."""

import http.client
import socket
import ssl
import time
from typing import Any, NamedTuple

import msgspec

from stepline.errors import SteplineError
from stepline.sources.address import shown
from stepline.sources.load.level import Address

MAX_BYTES = 32 << 20
"""A /metrics answer of a large fleet is a few MB; more than this is no answer to read."""


class Unreachable(SteplineError):
    """The server could not be asked; the message names it and the way out."""


class Reply(NamedTuple):
    """Status and body of an answer."""

    status: int
    body: bytes

    @property
    def ok(self) -> bool:
        """True for 200."""
        return self.status == 200

    def json(self) -> Any:
        """The body as JSON, or None where it is none or the status is not 200."""
        if not self.ok:
            return None
        try:
            return msgspec.json.decode(self.body)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            return None


class Http:
    """Asks one server, with the user's headers on every request."""

    def __init__(self, address: Address, timeout_s: float = 10.0) -> None:
        self.address = address
        self._timeout_s = timeout_s

    def get(self, path: str, *, timeout_s: float | None = None) -> Reply:
        """GET a path below the server's prefix.

        Raises:
            Unreachable: no connection, no answer in time, or no HTTP.
        """
        return self._ask("GET", path, None, timeout_s)

    def post(self, path: str, body: dict[str, Any] | None = None, *, timeout_s: float | None = None) -> Reply:
        """POST JSON (or nothing) to a path below the server's prefix; raises like `get`."""
        return self.post_bytes(path, b"" if body is None else msgspec.json.encode(body), timeout_s=timeout_s)

    def post_bytes(self, path: str, body: bytes, *, timeout_s: float | None = None) -> Reply:
        """POST a body that is JSON already; raises like `get`."""
        return self._ask("POST", path, body, timeout_s)

    def _ask(self, method: str, path: str, body: bytes | None, timeout_s: float | None) -> Reply:
        address = self.address
        timeout = timeout_s or self._timeout_s
        connection: http.client.HTTPConnection
        if address.tls:
            connection = http.client.HTTPSConnection(
                address.host, address.port, timeout=timeout, context=ssl.create_default_context()
            )
        else:
            connection = http.client.HTTPConnection(address.host, address.port, timeout=timeout)
        headers = dict(address.headers) | {"Accept": "*/*"}
        if body:
            headers["Content-Type"] = "application/json"
        try:
            connection.request(method, address.prefix + path, body=body, headers=headers)
            answer = connection.getresponse()
            return Reply(answer.status, _bounded(answer, timeout))
        except ssl.SSLCertVerificationError as error:
            raise Unreachable(
                f"{shown(address)}: its certificate is not trusted ({error.verify_message}); "
                "set SSL_CERT_FILE to the authority's file"
            ) from None
        except (OSError, http.client.HTTPException, UnicodeError) as error:
            if (other := _other_scheme(address, error)) is not None:
                raise Unreachable(other) from None
            why = str(error) or type(error).__name__
            raise Unreachable(
                f"{shown(address)}{path}: no answer ({why[:120]}); check that the server runs and the URL is right"
            ) from None
        finally:
            connection.close()


PLAIN_ANSWERS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG")
"""What OpenSSL 1.1 to 3.x make of plain text where a handshake should come."""


def _other_scheme(address: Address, error: Exception) -> str | None:
    """What to type where the port speaks TLS and was asked in plain HTTP, or the other way round."""
    asked = shown(address)
    if address.tls:
        if isinstance(error, ssl.SSLError) and error.reason in PLAIN_ANSWERS:
            return f"{asked}: no TLS is spoken there; give http{asked.removeprefix('https')}"
    elif isinstance(error, http.client.BadStatusLine | ConnectionResetError) and _speaks_tls(address):
        return f"{asked}: only TLS is spoken there; give https{asked.removeprefix('http')}"
    return None


def _speaks_tls(address: Address) -> bool:
    """A handshake succeeds, whoever's certificate it is: nothing is sent."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with (
            socket.create_connection((address.host.strip("[]"), address.port), timeout=2.0) as plain,
            context.wrap_socket(plain),
        ):
            return True
    except OSError:
        return False


def _bounded(answer: http.client.HTTPResponse, timeout_s: float) -> bytes:
    """The body up to MAX_BYTES, given up when it trickles in for longer than twice the timeout."""
    deadline = time.monotonic() + 2 * timeout_s
    parts: list[bytes] = []
    size = 0
    while chunk := answer.read1(1 << 16):
        parts.append(chunk)
        size += len(chunk)
        if size > MAX_BYTES:
            raise http.client.HTTPException(f"over {MAX_BYTES >> 20} MB")
        if time.monotonic() > deadline:
            raise TimeoutError("the answer trickles in")
    return b"".join(parts)

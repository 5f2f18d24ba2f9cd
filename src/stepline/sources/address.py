"""Where a server is, from what the user typed."""

import os
import re
from collections.abc import Sequence
from urllib.parse import urlsplit

from stepline.errors import UsageError
from stepline.sources.load.level import Address

KEY_VARIABLE = "STEPLINE_API_KEY"
"""Environment variable with a bearer token, so that no key need stand on a command line."""
_LOOPBACK = re.compile(r"localhost|127\.\d+\.\d+\.\d+|::1|0\.0\.0\.0|::")
"""The last two are what servers say they listen on; connecting to them reaches this machine."""
_SECRET_NAME = re.compile(r"(?i)auth|key|token|secret|cookie|pass|credential|session")
_SHORTEST_SECRET = 6
_BARE = re.compile(r"(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\]):\d{1,5}(?:/\S*)?")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


def is_url(target: str) -> bool:
    """True for what names a server rather than a file."""
    return target.lower().startswith(("http://", "https://"))


def lacks_scheme(target: str) -> bool:
    """True for `host:port`, which is a URL in many tools and in this one a file that is not there."""
    return _BARE.fullmatch(target) is not None


def parse(url: str, headers: Sequence[str] = ()) -> Address:
    """The address of `http[s]://host[:port][/prefix]`, with `Name: value` headers.

    Raises:
        UsageError: when the URL or a header is not of that form; the header's value is never repeated.
    """
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError:
        port = -1
    if parts.scheme not in ("http", "https") or not parts.hostname or port == -1:
        raise UsageError("the URL needs the form http://HOST:PORT, for example http://localhost:30000")
    if parts.username or parts.password:
        raise UsageError(f"a URL with a password in it ends up in histories: use --header or {KEY_VARIABLE}")
    tls = parts.scheme == "https"
    prefix = parts.path.rstrip("/").removesuffix("/v1")
    return Address(
        host=parts.hostname,
        port=port or (443 if tls else 80),
        prefix=prefix,
        tls=tls,
        headers=_headers(headers),
    )


def _headers(lines: Sequence[str]) -> tuple[tuple[str, str], ...]:
    headers = []
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not _TOKEN.fullmatch(name.strip()) or not _sendable(value.strip()):
            raise UsageError("--header needs the form 'Name: value' in one line of plain ASCII")
        headers.append((name.strip(), value.strip()))
    key = os.environ.get(KEY_VARIABLE, "").strip()
    if key and not any(name.lower() == "authorization" for name, _ in headers):
        if not _sendable(key):
            raise UsageError(f"{KEY_VARIABLE} holds characters that no key has; set it anew")
        headers.append(("Authorization", f"Bearer {key}"))
    return tuple(headers)


def _sendable(text: str) -> bool:
    return text.isascii() and text.isprintable()


def shown(address: Address) -> str:
    """The address as it may be shown and stored: no header, no password."""
    host = f"[{address.host}]" if ":" in address.host else address.host
    return f"{'https' if address.tls else 'http'}://{host}:{address.port}{address.prefix}"


def secrets(address: Address) -> tuple[str, ...]:
    """What of the headers is secret, the longest first: a server may repeat it in an answer or a log."""
    found: set[str] = set()
    for name, value in address.headers:
        if _SECRET_NAME.search(name):
            found |= {value, value.rsplit(" ", 1)[-1]}
    return tuple(sorted((s for s in found if len(s) >= _SHORTEST_SECRET), key=len, reverse=True))


def is_local(address: Address) -> bool:
    """True when the server runs on this machine by its name, so that its files may be looked at."""
    return _LOOPBACK.fullmatch(address.host) is not None

"""One request at a time: what a person is told where nobody answers as asked."""

import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from stepline.sources.address import parse
from stepline.sources.http import Http, Unreachable


class Quiet(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing."""


@contextmanager
def serving(certificate: Path | None = None) -> Iterator[int]:
    server = HTTPServer(("127.0.0.1", 0), Quiet)
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate that signs itself, with its key."""
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    key = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost")
    made = subprocess.run([*key, "-keyout", "-", "-out", "-"], capture_output=True, check=False)
    if made.returncode:
        pytest.skip("needs openssl")
    path.write_bytes(made.stdout)
    return path


def told(url: str) -> str:
    with pytest.raises(Unreachable) as error:
        Http(parse(url), timeout_s=5).get("/health")
    return str(error.value)


def test_https_on_a_plain_port_names_the_url_to_type() -> None:
    with serving() as port:
        assert told(f"https://127.0.0.1:{port}") == (
            f"https://127.0.0.1:{port}: no TLS is spoken there; give http://127.0.0.1:{port}"
        )


def test_http_on_a_tls_port_names_the_url_to_type(certificate: Path) -> None:
    with serving(certificate) as port:
        assert told(f"http://127.0.0.1:{port}/v1") == (
            f"http://127.0.0.1:{port}: only TLS is spoken there; give https://127.0.0.1:{port}"
        )


def test_where_nobody_listens_no_scheme_is_guessed() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    assert "no answer" in told(f"http://127.0.0.1:{port}")

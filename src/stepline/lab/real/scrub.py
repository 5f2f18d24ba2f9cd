"""Take this machine's name and folders out of a capture."""

import os
import re
import socket
import tempfile
from pathlib import Path

_PACKAGES = re.compile(r"(?:/[\w.+@-]+)+/(?=(?:site|dist)-packages/)")


def scrub(text: str, work: Path) -> str:
    """Shorten package paths to `site-packages/…`, make those under `work` relative, call the host `host`."""
    for folder in (f"{work}", tempfile.gettempdir()):
        text = text.replace(f"{folder}/", "")
    for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep):
        if len(entry) > 1:
            text = text.replace(entry.rstrip("/") + "/", "site-packages/")
    text = _PACKAGES.sub("", text)
    name = socket.gethostname()
    return re.sub(rf"\b{re.escape(name)}\b", "host", text) if name not in {"", "localhost"} else text

"""A file of environment variables, as people keep beside a launch: `NAME=value` lines, `export` before them or not."""

import re

from stepline.evidence.origin import Origin
from stepline.evidence.run import EvidenceFile, Run
from stepline.evidence.start import Start
from stepline.sources.peek import Peek
from stepline.sources.redact import redact

MAX_BYTES = 1 << 20
_LINE = re.compile(r"\s*(?:export\s+)?([A-Z][A-Z0-9_]{1,80})=(.{0,400})$")
READ_BY_SERVERS = re.compile(
    r"(?:NCCL|VLLM|SGLANG|SGL|CUDA|TORCH|PYTORCH|TRITON|OMP|FLASHINFER|UCX|NVSHMEM|HIP|HSA|RCCL|DG|TRTLLM|MC)_"
)
"""Beginnings of the variables of engines and of the libraries under them."""


def recognises(peek: Peek) -> bool:
    """True where every line but comments sets a variable, and one of them is a server's."""
    if peek.binary or len(peek.head) > MAX_BYTES:
        return False
    lines = _lines(peek.head.decode("utf-8", "replace"))
    found = [_LINE.match(line) for line in lines]
    return bool(found) and all(found) and any(one and READ_BY_SERVERS.match(one[1]) for one in found)


def read_environment(peek: Peek) -> Run:
    """The variables that servers read."""
    with peek.open() as stream:
        text = stream.read(MAX_BYTES).decode("utf-8", "replace")
    pairs = [(found[1], found[2]) for line in _lines(text) if (found := _LINE.match(line))]
    kept = {
        name: redact(f"{name}={value}").partition("=")[2].strip("'\" ")
        for name, value in pairs
        if READ_BY_SERVERS.match(name)
    }
    file = EvidenceFile(path=peek.name, kind="environment", records=len(kept))
    return Run(files=(file,), start=Start(origin=Origin(peek.name), environment=kept))


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]

"""Sealed answers: what was said of a case, fixed before anybody measured what is true of it.

A campaign file has one JSON line an entry; each entry carries the hash of the one before, so that none can be changed,
taken out or put in between without every later hash telling. An answer's entry holds the hash of the diagnosis and
that of the code that made it, and must stand before the truth of the same case.
"""

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from stepline.errors import UnreadableEvidence

FIRST = "0" * 64
"""What the first entry carries as the hash before it."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a campaign file."""

    kind: Literal["campaign", "drawn", "answer", "truth", "failed"]
    case: str
    time_s: float
    """Seconds since the epoch, by the clock of the machine that ran it."""
    body: dict[str, Any]
    before: str
    """SHA-256 of the line before this one."""


class Doubt(msgspec.Struct, frozen=True):
    """Where a campaign file is not what it claims to be."""

    line: int
    text: str


def digest(content: bytes) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def append(file: Path, kind: str, case: str, body: dict[str, Any], time_s: float) -> Entry:
    """Add an entry at the end, chained to the last one.

    Raises:
        UnreadableEvidence: the file holds something that is no entry.
    """
    lines = _lines(file)
    before = digest(lines[-1]) if lines else FIRST
    entry = msgspec.convert(
        {"kind": kind, "case": case, "time_s": time_s, "body": body, "before": before}, Entry
    )
    with file.open("ab") as out:
        out.write(msgspec.json.encode(entry) + b"\n")
    return entry


def entries(file: Path) -> list[Entry]:
    """All entries in order.

    Raises:
        UnreadableEvidence: a line is no entry, with its number.
    """
    found = []
    for number, line in enumerate(_lines(file), 1):
        try:
            found.append(msgspec.json.decode(line, type=Entry))
        except msgspec.DecodeError as error:
            raise UnreadableEvidence(f"{file}:{number}: no entry of a campaign ({error})") from None
    return found


def verify(file: Path, diagnoses: dict[str, bytes] | None = None) -> list[Doubt]:
    """Whether the chain holds, every truth stands after its answer, and one version of the code gave all answers.

    Args:
        file: the campaign.
        diagnoses: the diagnoses themselves by case, where they are at hand, to hold against their hashes.
    """
    doubts: list[Doubt] = []
    lines, read = _lines(file), entries(file)
    before = FIRST
    for number, (line, entry) in enumerate(zip(lines, read, strict=True), 1):
        if entry.before != before:
            doubts.append(Doubt(number, "does not follow from the line before: something was changed"))
        before = digest(line)
    doubts += _order(read)
    codes = {str(entry.body.get("code_sha256")) for entry in read if entry.kind == "answer"}
    if len(codes) > 1:
        doubts.append(Doubt(1, f"answers of {len(codes)} versions of the code: a score pools one only"))
    for number, entry in enumerate(read, 1):
        said = (diagnoses or {}).get(entry.case)
        if entry.kind == "answer" and said is not None and digest(said) != entry.body.get("diagnosis_sha256"):
            doubts.append(Doubt(number, f"the diagnosis of {entry.case} is not the one that was sealed"))
    return doubts


def _order(read: Sequence[Entry]) -> Iterable[Doubt]:
    sealed: dict[str, int] = {}
    for number, entry in enumerate(read, 1):
        if entry.kind == "answer":
            if entry.case in sealed:
                yield Doubt(number, f"{entry.case} was answered twice, first in line {sealed[entry.case]}")
            sealed.setdefault(entry.case, number)
        if entry.kind == "truth" and entry.case not in sealed:
            yield Doubt(number, f"the truth of {entry.case} was known before its answer was sealed")


def _lines(file: Path) -> list[bytes]:
    try:
        return file.read_bytes().splitlines() if file.exists() else []
    except OSError as error:
        raise UnreadableEvidence(f"{file}: cannot be read ({error.strerror})") from None

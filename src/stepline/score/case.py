"""A labelled case: what is known about the system, which files hold the evidence, what is true of it."""

import tomllib
from pathlib import Path
from typing import Any

import msgspec

from stepline.errors import UnreadableEvidence
from stepline.findings.registry import RULES

NOTHING_CONFIRMED = frozenset(
    {"healthy", "unknown", "power-cap-not-limiting-decode", "eplb-rearrangement-stall"}
)
"""Labels that ask for silence: healthy servers, traps, and causes that no rule claims."""


CASE_FILE, TRUTH_FILE = "case.toml", "truth.toml"
"""Labels written by people, and those that the lab leaves beside a recording."""


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One labelled folder; `expected` is None where nothing may be confirmed."""

    name: str
    folder: Path
    files: tuple[str, ...]
    expected: str | None
    forbidden: frozenset[str]
    grade: str | None
    model: str | None
    hardware: str | None
    tp: int | None
    context_length: int | None


def load_case(folder: Path) -> Case:
    """Read a folder's `case.toml`, or the `truth.toml` of a recording.

    Raises:
        UnreadableEvidence: when it is damaged or a required key is missing, naming the key.
    """
    path = folder / CASE_FILE
    if not path.exists():
        return _recorded(folder)
    document = _toml(path)
    try:
        label = str(document["expected"]["finding"]).replace("_", "-")
        files = tuple(str(name) for name in document["data"]["files"])
    except KeyError as error:
        raise UnreadableEvidence(
            f"{path}: the key {error} is missing; see `expected` and `data` in other cases"
        ) from None
    system = document.get("system", {})
    silent = label in NOTHING_CONFIRMED or (
        label == "benchmark-artifact" and "queueing" not in str(document.get("slug"))
    )
    return Case(
        name=folder.name,
        folder=folder,
        files=files,
        expected=None if silent else "queue-not-decode" if label == "benchmark-artifact" else label,
        forbidden=frozenset(
            str(name).replace("_", "-") for name in document["expected"].get("forbidden", [])
        ),
        grade=document.get("grade"),
        model=system.get("model"),
        hardware=system.get("hardware") or system.get("gpu"),
        tp=system.get("tp"),
        context_length=system.get("context_length"),
    )


def _recorded(folder: Path) -> Case:
    """A recording of the lab: its label names rules by their codes, its evidence is all that lies beside it."""
    path = folder / TRUTH_FILE
    document = _toml(path)
    names = {rule.code: rule.codename for rule in RULES}
    try:
        expected = names[document["expected"]] if document["expected"] else None
        forbidden = frozenset(names[code] for code in document["forbidden"])
    except KeyError as error:
        raise UnreadableEvidence(
            f"{path}: {error} is missing, or the code of no rule; see `stepline explain` for those"
        ) from None
    return Case(
        name=folder.name,
        folder=folder,
        files=tuple(sorted(each.name for each in folder.iterdir() if each.suffix != ".toml")),
        expected=expected,
        forbidden=forbidden,
        grade=None,
        model=None,
        hardware=document.get("gpu"),
        tp=None,
        context_length=None,
    )


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UnreadableEvidence(f"{path}: no valid TOML ({error}); mend the file") from None


def find_cases(folder: Path) -> list[Path]:
    """Labelled folders under `folder` (or itself), by name."""
    return sorted({path.parent for name in (CASE_FILE, TRUTH_FILE) for path in folder.rglob(name)})

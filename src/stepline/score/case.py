"""A labelled case: what is known about the system, which files hold the evidence, what is true of it."""

import tomllib
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec

from stepline.errors import UnreadableEvidence
from stepline.findings.registry import RULES

CASE_FILE, TRUTH_FILE = "case.toml", "truth.toml"
"""Labels written by people, and those that the lab leaves beside a recording."""


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One labelled folder."""

    name: str
    folder: Path
    files: tuple[str, ...]
    expected: str | None
    """The class it counts in; None where nothing may be confirmed."""
    accepts: frozenset[str]
    """Every name that is right; empty where nothing may be confirmed."""
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
        label = _name(document["expected"]["finding"])
        files = _evidence(folder, document["data"].get("files"))
    except KeyError as error:
        raise UnreadableEvidence(
            f"{path}: the key {error} is missing; see `expected` and `data` in other cases"
        ) from None
    system = document.get("system", {})
    right = _accepts(path, document, document["expected"])
    if right is None:
        table = _accepted()
        right = table["case"].get(str(document.get("slug")), table["label"].get(label, (label,)))
    return Case(
        name=folder.name,
        folder=folder,
        files=files,
        expected=label if label in right else next(iter(right), None),
        accepts=frozenset(right),
        forbidden=frozenset(map(_name, document["expected"].get("forbidden", []))),
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
        label = names[document["expected"]] if document["expected"] else None
        forbidden = frozenset(names[code] for code in document["forbidden"])
    except KeyError as error:
        raise UnreadableEvidence(
            f"{path}: {error} is missing, or the code of no rule; see `stepline explain` for those"
        ) from None
    right = _accepts(path, document)
    if right is None:
        right = () if label is None else (label,)
    return Case(
        name=folder.name,
        folder=folder,
        files=_evidence(folder, None),
        expected=label if label in right else next(iter(right), None),
        accepts=frozenset(right),
        forbidden=forbidden,
        grade=None,
        model=None,
        hardware=document.get("gpu"),
        tp=None,
        context_length=None,
    )


def _name(word: object) -> str:
    """A rule's name as the registry spells it, from a code or from the spelling of case files."""
    text = str(word)
    return next((rule.codename for rule in RULES if rule.code == text), text.replace("_", "-"))


def _accepts(path: Path, *tables: dict[str, Any]) -> tuple[str, ...] | None:
    """What the file itself lists as right, in its head or beside its label; None where it lists nothing."""
    listed = next((table["accepts"] for table in tables if "accepts" in table), None)
    if listed is None:
        return None
    if not isinstance(listed, list) or not all(isinstance(name, str) for name in listed):
        raise UnreadableEvidence(f"{path}: `accepts` is a list of rules' names or codes, empty for silence")
    return tuple(map(_name, listed))


@cache
def _accepted() -> dict[str, dict[str, tuple[str, ...]]]:
    """`accepted.toml`: by slug of a case, and by label."""
    text = resources.files("stepline.score").joinpath("accepted.toml").read_text("utf-8")
    return {
        kind: {key: tuple(names) for key, names in rows.items()} for kind, rows in tomllib.loads(text).items()
    }


def _evidence(folder: Path, named: list[Any] | None) -> tuple[str, ...]:
    """The files named, or all beside the label. One that lies there in another format is that one."""
    beside = {each.name: each for each in sorted(folder.iterdir()) if each.suffix != ".toml"}
    if named is None:
        return tuple(beside)
    stems = {each.stem: name for name, each in beside.items()}
    return tuple(name if name in beside else stems.get(Path(name).stem, name) for name in map(str, named))


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UnreadableEvidence(f"{path}: no valid TOML ({error}); mend the file") from None


def find_cases(folder: Path) -> list[Path]:
    """Labelled folders under `folder` (or itself), by name."""
    return sorted({path.parent for name in (CASE_FILE, TRUTH_FILE) for path in folder.rglob(name)})

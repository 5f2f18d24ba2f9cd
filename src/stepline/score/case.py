"""A labelled case: what is known about the system, which files hold the evidence, what is true of it."""

import tomllib
from pathlib import Path
from typing import Any

import msgspec

from stepline.errors import UnreadableEvidence

NOTHING_CONFIRMED = frozenset(
    {"healthy", "unknown", "power-cap-not-limiting-decode", "eplb-rearrangement-stall"}
)
"""Labels that ask for silence: healthy servers, traps, and causes that no rule claims."""


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One folder with a `case.toml`; `expected` is None where nothing may be confirmed."""

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
    """Read a folder's `case.toml`.

    Raises:
        UnreadableEvidence: when it is damaged or a required key is missing, naming the key.
    """
    path = folder / "case.toml"
    try:
        document: dict[str, Any] = tomllib.loads(path.read_text("utf-8"))
        label = str(document["expected"]["finding"]).replace("_", "-")
        files = tuple(str(name) for name in document["data"]["files"])
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UnreadableEvidence(f"{path}: no valid TOML ({error}); mend the file") from None
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


def find_cases(folder: Path) -> list[Path]:
    """Folders under `folder` (or itself) that hold a `case.toml`, by name."""
    return sorted(path.parent for path in folder.rglob("case.toml"))

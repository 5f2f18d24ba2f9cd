"""Model configs that come with stepline, found by hub id or by the short names people use."""

import difflib
import functools
import re
from pathlib import Path
from typing import Any

import msgspec

from stepline.errors import UnknownFact

_FOLDER = Path(__file__).with_name("models")
_DROPPED = {"meta", "instruct", "hf", "base", "it", "v0.1", "chat"}


class KnownModel(msgspec.Struct, frozen=True, kw_only=True):
    """A published config, cut to the keys that bytes and FLOPs depend on."""

    hub_id: str
    source: str
    config: dict[str, Any]


def find_model(name: str) -> KnownModel:
    """Return the bundled model of that hub id or short name ("llama-3.1-8b").

    Raises:
        UnknownFact: No bundled model has that name; the nearest names are given.
    """
    names = _names()
    found = names.get(name.lower()) or names.get(_key(name))
    if found is None:
        near = difflib.get_close_matches(_key(name), names, n=8, cutoff=0)
        ids = list(dict.fromkeys(_hub_id(names[key]) for key in near))[:3]
        raise UnknownFact(
            f"no bundled model is called {name!r} (nearest: {', '.join(ids)}); "
            "give the path of its config.json instead"
        )
    content = msgspec.json.decode(found.read_bytes())
    return KnownModel(hub_id=_hub_id(found), source=content["source"], config=content["config"])


def model_ids() -> list[str]:
    """Return the hub ids of all bundled models."""
    return [_hub_id(path) for path in sorted(_FOLDER.glob("*.json"))]


def _hub_id(path: Path) -> str:
    return path.stem.replace("--", "/", 1)


def _key(name: str) -> str:
    words = re.split(r"[-_ ]+", name.lower().rsplit("/", 1)[-1])
    return "-".join(word for word in words if word not in _DROPPED)


@functools.cache
def _names() -> dict[str, Path]:
    names: dict[str, Path] = {}
    for path in sorted(_FOLDER.glob("*.json")):
        names.setdefault(_key(path.stem.replace("--", "/", 1)), path)
    names.update({_hub_id(path).lower(): path for path in _FOLDER.glob("*.json")})
    return names

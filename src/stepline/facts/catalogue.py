"""Model configs that come with stepline, found by hub id or by the short names people use."""

import difflib
import functools
import re
from pathlib import Path
from typing import Any

import msgspec

from stepline.errors import UnknownFact
from stepline.facts.hub_cache import cached_config, hub_id
from stepline.facts.model_names import derivation

_FOLDER = Path(__file__).with_name("models")
_DROPPED = {"meta", "instruct", "hf", "base", "it", "v0.1", "chat"}


class KnownModel(msgspec.Struct, frozen=True, kw_only=True):
    """A published config, cut to the keys that bytes and FLOPs depend on, or one of the local hub cache."""

    hub_id: str
    source: str
    config: dict[str, Any]
    stands_for: str | None = None
    """What is not known where the config is that of the base of the model asked for."""


def find_model(name: str) -> KnownModel:
    """The model of that hub id, short name ("llama-3.1-8b"), folder name, or derived name of a known base.

    A bundled config comes first, then the local hub cache, then the base that is left when a date, a tuning or a
    quantisation is taken off the name; the quantisation is then put into the base's config, and `stands_for` says so.

    Raises:
        UnknownFact: No such model is known; the nearest names are given.
    """
    name = hub_id(name.strip().rstrip("/"))
    names = _names()
    if found := names.get(name.lower()) or names.get(_key(name)):
        return _bundled(found)
    if cached := cached_config(name):
        return KnownModel(hub_id=name, source=str(cached[0]), config=cached[1])
    return _base(name)


def _base(name: str) -> KnownModel:
    names, derived = _names(), derivation(name.rsplit("/", 1)[-1])
    found = names.get(_key(derived.base))
    if found is None:
        near = difflib.get_close_matches(_key(derived.base), names, n=8, cutoff=0)
        ids = list(dict.fromkeys(_hub_id(names[key]) for key in near))[:3]
        raise UnknownFact(
            f"no bundled model is called {name!r} (nearest: {', '.join(ids)}); "
            "give the path of its config.json instead"
        )
    base = _bundled(found)
    if derived.unreadable:
        raise UnknownFact(
            f"{name!r} is {base.hub_id} stored as {derived.unreadable}, whose bytes a weight are not known here; "
            "give the path of its config.json instead"
        )
    with_what = f" with {derived.method} weights, by its name" if derived.method else ""
    config = (
        base.config if derived.section is None else {**base.config, "quantization_config": derived.section}
    )
    return KnownModel(
        hub_id=base.hub_id,
        source=base.source,
        config=config,
        stands_for=f"what sets {name} apart from {base.hub_id}, whose config stands in for it{with_what}",
    )


def _bundled(path: Path) -> KnownModel:
    content = msgspec.json.decode(path.read_bytes())
    return KnownModel(hub_id=_hub_id(path), source=content["source"], config=content["config"])


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

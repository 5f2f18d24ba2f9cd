"""Settings out of what an engine printed or answered: flat arguments, nested configs, environments."""

from collections.abc import Mapping
from typing import Any

from stepline.evidence.origin import Origin
from stepline.evidence.setting import SettingSaid, Speaker
from stepline.facts.settings import COMMON, Catalogue, catalogue
from stepline.sources.settings.values import clean, is_secret, parse_value

MAX_DEPTH = 4
OTHER_NAMES = {
    "vllm": {"max_seq_len": "max_model_len", "cache_dtype": "kv_cache_dtype", "policy": "scheduling_policy"}
}
"""What vLLM's config objects call arguments: `config/cache.py`, `config/scheduler.py`; the rest are called alike."""


def said_in_dump(
    engine: str, settings: Mapping[str, Any], by: Speaker, file: str, line: int | None = None
) -> tuple[SettingSaid, ...]:
    """Every entry that the engine's catalogue knows, also inside nested configs; outer ones win."""
    known = catalogue(engine)
    found: dict[str, SettingSaid] = {}
    for name, value in _walk(known, settings, "", 0):
        kept = "[redacted]" if is_secret(name) and value else clean(value)
        found.setdefault(
            name, SettingSaid(engine=engine, name=name, value=kept, by=by, origin=Origin(file, line, name))
        )
    return tuple(found.values())


def said_in_environment(
    engine: str | None, variables: Mapping[str, str], file: str, line: int | None = None
) -> tuple[SettingSaid, ...]:
    """Variables that the engine's or the common catalogue knows."""
    found = []
    for each in (*((engine,) if engine else ()), COMMON):
        known = catalogue(each)
        for variable, text in variables.items():
            name = known.variables.get(variable)
            if name is not None:
                value = parse_value(known.settings[name], text)
                origin = Origin(file, line, variable)
                found.append(
                    SettingSaid(engine=each, name=name, value=value, by="environment", origin=origin)
                )
    return tuple(found)


def _walk(known: Catalogue, settings: Mapping[str, Any], path: str, depth: int) -> list[tuple[str, Any]]:
    """(catalogue name, value) of this level, then of the levels inside."""
    here: list[tuple[str, Any]] = []
    inside: list[tuple[str, Any]] = []
    other = OTHER_NAMES.get(known.engine, {})
    for key, value in settings.items():
        plain = str(key).replace("-", "_")
        dotted = f"{path}.{plain}" if path else plain
        names = [dotted] if path in _OWN_NAMESPACE else [dotted, other.get(plain, plain)]
        name = next((each for each in names if each in known.settings), None)
        if name is not None:
            here.append((name, value))
        if isinstance(value, Mapping) and depth < MAX_DEPTH:
            inside += _walk(known, value, name or plain, depth + 1)
    return here + inside


_OWN_NAMESPACE = ("speculative_config", "kv_transfer_config")
"""Configs whose keys name something else than the argument that is called alike: a draft's model, a store's rank."""

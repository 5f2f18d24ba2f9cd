"""Configs of models that a hub client has on this machine already; read, never fetched or written."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

_LARGEST = 4 << 20
"""Bytes of a config.json at most: real ones have up to about 1 MB (lists of quantised layers)."""
_ID = re.compile(r"[\w.-]+/[\w.-]+")
_SNAPSHOT = re.compile(r"models--([\w.-]+?)--([\w.-]+)/snapshots/")


def hub_id(name: str) -> str:
    """The hub id inside a path of the cache (`…/models--org--name/snapshots/…`); else the name as it is."""
    found = _SNAPSHOT.search(name)
    return f"{found[1]}/{found[2]}" if found else name


def cached_config(name: str) -> tuple[Path, dict[str, Any]] | None:
    """The newest config.json of that hub id below the caches that the environment names; None where there is none."""
    if not _ID.fullmatch(name) or ".." in name:
        return None
    for cache in _caches():
        files = [*(cache / f"models--{name.replace('/', '--')}" / "snapshots").glob("*/config.json")]
        for file in sorted(files, key=lambda one: one.stat().st_mtime, reverse=True):
            if (config := _read(file)) is not None:
                return file, config
    return None


def _caches() -> Iterator[Path]:
    """Where huggingface_hub 0.36 looks: HF_HUB_CACHE, HF_HOME/hub, XDG_CACHE_HOME/huggingface/hub, ~/.cache."""
    environment = os.environ
    if cache := environment.get("HF_HUB_CACHE") or environment.get("HUGGINGFACE_HUB_CACHE"):
        yield Path(cache)
    elif home := environment.get("HF_HOME"):
        yield Path(home) / "hub"
    else:
        yield Path(environment.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "huggingface" / "hub"


def _read(file: Path) -> dict[str, Any] | None:
    try:
        if file.stat().st_size > _LARGEST:
            return None
        return msgspec.json.decode(file.read_bytes(), type=dict[str, Any])
    except (OSError, msgspec.DecodeError, RecursionError):
        return None

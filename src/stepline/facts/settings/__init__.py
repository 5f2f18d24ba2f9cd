"""Every setting of the engines: what it is called, what it defaults to, what it does to decode speed.

Two files an engine: `ENGINE.names.jsonl` is written by `scripts/settings.py` from the engine's own releases,
`ENGINE.written.jsonl` holds what people judged. How both are made, checked and extended: `docs/settings.md`.
"""

from stepline.facts.settings.catalogue import COMMON, ENGINES, Catalogue, catalogue
from stepline.facts.settings.records import Judgement, Setting, Unknown

__all__ = ["COMMON", "ENGINES", "Catalogue", "Judgement", "Setting", "Unknown", "catalogue"]

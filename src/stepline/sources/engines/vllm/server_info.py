"""vLLM's `/server_info` (only with `VLLM_SERVER_DEV_MODE=1`): the config as nested JSON or as one text."""

from collections.abc import Mapping
from typing import Any

from stepline.evidence.origin import Origin
from stepline.evidence.run import Run
from stepline.sources.arguments import start_of
from stepline.sources.engines.vllm.settings import facts_from_settings
from stepline.sources.pyrepr import parse_keywords


def recognises(document: object) -> bool:
    """True for a JSON object that holds vLLM's config."""
    return isinstance(document, Mapping) and "vllm_config" in document


def read_server_info(document: Mapping[str, Any], file: str) -> Run:
    """Settings as the engine resolved them."""
    config = document["vllm_config"]
    settings = parse_keywords(config) if isinstance(config, str) else config
    known = settings if isinstance(settings, Mapping) else {}
    return Run(server=facts_from_settings(known, file), start=start_of(known, Origin(file)))

"""A model that the user names: a config.json with what lies beside it, or a bundled config."""

import json
from pathlib import Path
from typing import Any

import msgspec

from stepline.errors import UnknownFact, UnreadableEvidence
from stepline.facts.catalogue import find_model
from stepline.model.roofline.architecture import Architecture, parse_config


def load_architecture(model: str) -> Architecture:
    """Read a model from a folder, a config.json, or the bundled configs by name.

    Beside a config.json, hf_quant_config.json gives the quantisation it may lack and the safetensors index
    or headers give the exact size.

    Raises:
        UnreadableEvidence: The file is no JSON object.
        UnknownFact: No such model, or its config cannot be read into a known architecture.
    """
    path = Path(model)
    if not path.exists():
        if path.suffix == ".json" or model.startswith((".", "/")):
            raise UnknownFact(f"there is no model at {model}")
        known = find_model(model)
        architecture = parse_config(known.config, name=known.hub_id)
        if known.stands_for is None:
            return architecture
        return msgspec.structs.replace(
            architecture, not_counted=(*architecture.not_counted, known.stands_for)
        )
    file = path / "config.json" if path.is_dir() else path
    if not file.is_file():
        raise UnknownFact(f"{path} holds no config.json")
    beside = file.parent / "hf_quant_config.json"
    raw = _object(file)
    own = raw.get("quantization_config") or any(
        isinstance(part, dict) and part.get("quantization_config") for part in raw.values()
    )
    quantisation = _object(beside) if beside.is_file() and not own else None
    name = str(raw.get("_name_or_path") or file.resolve().parent.name)
    architecture = parse_config(raw, name=name, quantisation=quantisation)
    return msgspec.structs.replace(architecture, exact_bytes=_weight_bytes(file.parent))


def _weight_bytes(folder: Path) -> float | None:
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        total = _object(index).get("metadata", {}).get("total_size")
        if isinstance(total, int | float):
            return float(total)
    total_bytes = 0
    for file in sorted(folder.glob("*.safetensors")):
        with file.open("rb") as stream:
            header = int.from_bytes(stream.read(8), "little")
        total_bytes += file.stat().st_size - 8 - header
    return float(total_bytes) if total_bytes else None


def _object(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_text())
    except (ValueError, OSError) as error:
        raise UnreadableEvidence(f"{file} cannot be read as JSON: {error}") from error
    if not isinstance(content, dict):
        raise UnreadableEvidence(f"{file} holds no JSON object")
    return content

"""What people and tools add to a model's name: a date, a tuning, a quantisation."""

import re
from typing import Any

import msgspec

_DATE = re.compile(r"^(?:20\d{6}|\d{6}|(?:2[0-9]|0[1-9]|1[0-2])[0-3]\d|20\d\d)$")
"""2507, 0528, 20250528: releases of one architecture."""
_TUNING = {
    *(
        "instruct",
        "chat",
        "base",
        "it",
        "hf",
        "thinking",
        "think",
        "preview",
        "sft",
        "dpo",
        "rlhf",
        "reasoning",
    ),
    *(
        "dynamic",
        "block",
        "channel",
        "tensor",
        "static",
        "offline",
        "quantized",
        "quant",
        "ct",
        "ao",
        "unsloth",
    ),
    *(
        "calibrated",
        "g32",
        "g64",
        "g128",
        "asym",
        "sym",
        "marlin",
        "mlperf",
        "latest",
        "main",
        "final",
        "abliterated",
    ),
}
"""Words after a name that change neither layers nor sizes."""


def _int4(group: int) -> dict[str, Any]:
    return {"quant_method": "gptq", "bits": 4, "group_size": group, "sym": True}


_FP8 = {"quant_method": "fp8"}
_NVFP4 = {"quant_method": "modelopt", "quant_algo": "NVFP4"}
_INT8 = {
    "quant_method": "compressed-tensors",
    "config_groups": {
        "group_0": {"weights": {"num_bits": 8, "type": "int"}, "input_activations": {"num_bits": 8}}
    },
}
_SECTIONS: tuple[tuple[re.Pattern[str], str, dict[str, Any]], ...] = (
    (re.compile(r"nvfp4|fp4"), "NVFP4", _NVFP4),
    (re.compile(r"mxfp4"), "MXFP4", {"quant_method": "mxfp4"}),
    (re.compile(r"mxfp8"), "MXFP8", {"quant_method": "mxfp8"}),
    (re.compile(r"fp8|w8a8fp8|fp8kv|e4m3"), "FP8", _FP8),
    (re.compile(r"w8a8|int8|w8a8int8|sq8"), "INT8", _INT8),
    (re.compile(r"awq|gptq|int4|w4a16|autoround|w4"), "int4", _int4(128)),
)
"""Sections that store every linear layer in the type named: what is exempt is not known, so no byte is too many."""
_PRECISION = {"bf16", "fp16", "bfloat16", "float16"}
_GGUF = re.compile(r"[-_.]((?:ud[-_])?i?q\d(?:_\w+)*)(?:\.gguf)?$", re.IGNORECASE)
_UNREADABLE = re.compile(
    r"gguf|ud|exl[23]|mlx|bnb|nf4|\d+bit|\dbpw|hqq|aqlm|quip|int[2356]|w[23]a\d+|onnx|awq4bit|imatrix"
)
"""Formats whose bytes a weight the name alone does not give."""


class Derivation(msgspec.Struct, frozen=True):
    """A name taken apart: what is left, and what the rest says of the weights."""

    base: str
    method: str | None = None
    section: dict[str, Any] | None = None
    """The quantisation that the name says, empty for plain 16 bits, None where it says nothing."""
    unreadable: str | None = None


def derivation(name: str) -> Derivation:
    """Take dates, tunings and quantisations off the end of a model's name; the base keeps its spelling."""
    if found := _GGUF.search(name):
        return msgspec.structs.replace(derivation(name[: found.start()]), unreadable=found[1])
    words = re.split(r"[-_ ]+|\.(?=w\d+a\d+)", name)
    said: tuple[str | None, dict[str, Any] | None] = (None, None)
    unreadable = None
    while len(words) > 1:
        last = words[-1].lower()
        known = next(((what, section) for at, what, section in _SECTIONS if at.fullmatch(last)), None)
        if last in _PRECISION:
            known = ("16-bit", {})
        if _UNREADABLE.fullmatch(last):
            unreadable = words[-1]
        elif known:
            said = said if said[0] else known
        elif not (_DATE.match(last) or last in _TUNING):
            break
        words.pop()
    return Derivation("-".join(words), *said, unreadable)

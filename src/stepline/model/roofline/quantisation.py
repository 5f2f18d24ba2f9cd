"""From a checkpoint's quantisation section to the format of each weight.

Bits per weight count the scales: MXFP4 4.25 (one byte per 32), NVFP4 4.5 (one per 16), int4 in groups of 32
4.5 and of 128 4.125, FP8 in blocks of 128 by 128 about 8.002. The type multiplied is the narrowest the
scheme allows, so that a floor built on it stays below any engine's choice.
"""

import difflib
import re
from collections.abc import Iterable, Mapping
from fnmatch import translate
from typing import Any

import msgspec

from stepline.errors import UnknownFact
from stepline.facts.number_types import number_type
from stepline.model.roofline.architecture_parts import BF16, FP32, Format

MXFP4 = Format("mxfp4", 4.25, "fp4")
MXFP8 = Format("mxfp8", 8.25, "fp8")
NVFP4 = Format("nvfp4", 4.5, "fp4")
FP8 = Format("fp8", 8.0, "fp8")
INT8 = Format("int8", 8.0, "int8")

_ALGORITHMS = {
    "nvfp4": NVFP4,
    "nvfp4_awq": NVFP4,
    "w4a16_nvfp4": Format("nvfp4 weights", 4.5, "bf16"),
    "w4a8_nvfp4_fp8": Format("nvfp4 weights", 4.5, "fp8"),
    "w4a8_mxfp4_fp8": Format("mxfp4 weights", 4.25, "fp8"),
    "mxfp4": MXFP4,
    "mxfp8": MXFP8,
    "fp8": FP8,
    "fp8_pb_wo": Format("fp8 blocks", 8.002, "fp8"),
    "fp8_block_scales": Format("fp8 blocks", 8.002, "fp8"),
    "fp8_per_channel_per_token": FP8,
    "w8a8_sq_per_channel": INT8,
    "int4_awq": Format("int4", 4.125, "bf16"),
    "w4a16_awq": Format("int4", 4.125, "bf16"),
    "w4a8_awq": Format("int4", 4.125, "fp8"),
    "w8a16": Format("int8 weights", 8.0, "bf16"),
}
"""Names modelopt gives its algorithms (TensorRT-Model-Optimizer, modelopt/torch/export, 0.45)."""

_PLAIN = {
    "bfloat16": BF16,
    "float16": BF16,
    "half": BF16,
    "bf16": BF16,
    "fp16": BF16,
    "float32": FP32,
    "fp32": FP32,
    "float8_e4m3fn": FP8,
    "float8_e4m3fnuz": FP8,
    "float8_e5m2": FP8,
}
_PREFIX = re.compile(r"^(?:(?:model|language_model|backbone|llm|transformer)\.)+")
_SPELLINGS = (("self_attn.", "attn."), ("mlp.", "ffn."), ("mlp.", "block_sparse_moe."))


class Names:
    """A set of module names: whole names or their parts, globs, and `re:` expressions."""

    def __init__(self, names: Iterable[str]) -> None:
        self._exact: set[str] = set()
        patterns: list[str] = []
        for name in names:
            if name.startswith("re:"):
                patterns.append(f"(?:{name[3:]})")
            elif any(sign in name for sign in "*?["):
                glob = translate(_PREFIX.sub("", name))
                patterns.append(f"(?:(?:.*\\.)?{glob.removesuffix(chr(92) + 'Z')}(?:\\..*)?$)")
            else:
                self._exact.add(_PREFIX.sub("", name))
        self._pattern = re.compile("|".join(patterns)) if patterns else None

    def __bool__(self) -> bool:
        return bool(self._exact) or self._pattern is not None

    def __contains__(self, path: object) -> bool:
        return bool(self) and any(self._matches(spelling) for spelling in _spellings(str(path)))

    def _matches(self, path: str) -> bool:
        words = path.split(".")
        spans = (".".join(words[i:j]) for i in range(len(words)) for j in range(i + 1, len(words) + 1))
        if any(span in self._exact for span in spans):
            return True
        if self._pattern is None:
            return False
        return any(self._pattern.match(prefix + path) for prefix in ("", "model.", "language_model.model."))


def _spellings(path: str) -> list[str]:
    return [path, *(path.replace(old, new) for old, new in _SPELLINGS if old in path)]


class Quantisation(msgspec.Struct, frozen=True, kw_only=True):
    """Which weight is stored how; the first rule that names a module wins."""

    name: str
    plain: Format
    """What the checkpoint's unquantised weights are."""
    rules: tuple[tuple[Names | None, Format], ...] = ()
    """None names every linear layer."""
    kept: Names
    experts: Format | None = None
    """Overrides the rules for routed experts."""
    kv_dtype: str = "auto"

    def of(self, path: str, *, expert: bool = False) -> Format:
        """Return the format of a linear layer called `path` ("layers.3.self_attn.q_proj")."""
        if expert and self.experts is not None:
            return self.experts
        if path in self.kept:
            return self.plain
        return next((fmt for names, fmt in self.rules if names is None or path in names), self.plain)


def parse_quantisation(section: object, raw: Mapping[str, Any]) -> Quantisation:
    """Read a quantization_config (or the content of hf_quant_config.json); `raw` is the text config.

    Raises:
        UnknownFact: The method, algorithm or number format is not one this module knows.
    """
    dtype = str(raw.get("dtype") or raw.get("torch_dtype") or "bfloat16").removeprefix("torch.")
    if dtype not in _PLAIN:
        raise UnknownFact(f"the weight type {dtype!r} (key dtype) is not known; known: {', '.join(_PLAIN)}")
    plain = _PLAIN[dtype]
    if not section:
        return Quantisation(name="none", plain=plain, kept=Names(()))
    if not isinstance(section, Mapping):
        raise UnknownFact(f"quantization_config is {section!r:.60}, not a section of keys")
    inner = section.get("quantization")
    if isinstance(inner, Mapping):
        section = {"quant_method": "modelopt", **inner}
    method = str(section.get("quant_method") or ("modelopt" if "quant_algo" in section else "")).lower()
    readers = {
        "fp8": _fp8, "mxfp4": _mxfp4, "compressed-tensors": _groups, "modelopt": _modelopt, "awq": _integer,
        "modelopt_fp4": _modelopt, "modelopt_mixed": _modelopt, "gptq": _integer, "auto-round": _integer,
        "autoawq": _integer, "gptqmodel": _integer, "bitsandbytes": _bitsandbytes, "quark": _quark,
        "mxfp8": _mxfp8,
    }  # fmt: skip
    if method not in readers:
        near = difflib.get_close_matches(method, readers, n=3, cutoff=0)
        raise UnknownFact(
            f"quantization_config: quant_method {method!r} is not known; nearest: {', '.join(near)}"
        )
    try:
        rules, kept = readers[method](section)
        names = Names(kept)
    except (TypeError, AttributeError, KeyError, IndexError, ValueError, re.error) as error:
        raise UnknownFact(f"quantization_config: a {method} section of unexpected shape ({error})") from error
    # Layers that a section lists one by one say more than the config's word about all experts.
    experts = None if section.get("quantized_layers") else raw.get("expert_dtype")
    experts = section.get("moe_quant_algo") or experts
    return Quantisation(
        name=method,
        plain=plain,
        rules=tuple(rules),
        kept=names,
        experts=_expert_format(experts),
        kv_dtype=_kv_dtype(section),
    )


_Rules = tuple[list[tuple[Names | None, Format]], list[str]]


def _expert_format(name: object) -> Format | None:
    if name is None:
        return None
    known = {"fp4": MXFP4, "mxfp4": MXFP4, "nvfp4": NVFP4, "fp8": FP8, "bf16": BF16, "bfloat16": BF16}
    if str(name).lower() not in known:
        raise UnknownFact(f"expert_dtype {name!r} is not known; known: {', '.join(known)}")
    return known[str(name).lower()]


def _kept(section: Mapping[str, Any]) -> list[str]:
    keys = (
        "modules_to_not_convert",
        "ignored_layers",
        "ignore",
        "exclude_modules",
        "exclude",
        "llm_int8_skip_modules",
    )
    return [str(name) for key in keys for name in section.get(key) or ()]


def _kv_dtype(section: Mapping[str, Any]) -> str:
    scheme = section.get("kv_cache_quant_algo") or section.get("kv_cache_scheme")
    if scheme is None:
        return "auto"
    if isinstance(scheme, Mapping):
        scheme = f"{'fp' if scheme.get('type') == 'float' else 'int'}{scheme.get('num_bits')}"
    return number_type(str(scheme)) or str(
        scheme
    )  # read where it is needed: an unknown cache type costs no weight its format


def _fp8(section: Mapping[str, Any]) -> _Rules:
    block = section.get("weight_block_size")
    bits = 8.0
    if block:
        scale_bits = 8 if section.get("scale_fmt") == "ue8m0" else 32
        bits += scale_bits / (block[0] * block[1])
    # Beside a separate algorithm for experts, the list of exceptions is about that algorithm.
    kept = [] if section.get("moe_quant_algo") else _kept(section)
    return [(None, Format("fp8 blocks" if block else "fp8", bits, "fp8"))], kept


def _mxfp4(section: Mapping[str, Any]) -> _Rules:
    return [(None, MXFP4)], _kept(section)


def _mxfp8(section: Mapping[str, Any]) -> _Rules:
    return [(None, MXFP8)], _kept(section)


def _modelopt(section: Mapping[str, Any]) -> _Rules:
    layers = section.get("quantized_layers")
    if layers:
        by_format: dict[Format, list[str]] = {}
        for name, layer in layers.items():
            by_format.setdefault(_algorithm(layer["quant_algo"]), []).append(name)
        return [(Names(names), fmt) for fmt, names in by_format.items()], _kept(section)
    if section.get("config_groups") and len(section["config_groups"]) > 1:
        return _groups(section)
    return [(None, _algorithm(section.get("quant_algo")))], _kept(section)


def _algorithm(name: object) -> Format:
    found = _ALGORITHMS.get(str(name).lower())
    if found is None:
        near = difflib.get_close_matches(str(name).lower(), _ALGORITHMS, n=3, cutoff=0)
        raise UnknownFact(f"quant_algo {name!r} is not known; nearest: {', '.join(near)}")
    return found


def _groups(section: Mapping[str, Any]) -> _Rules:
    groups = section.get("config_groups")
    if not groups:
        raise UnknownFact("quantization_config lacks the key config_groups, which compressed-tensors needs")
    rules: list[tuple[Names | None, Format]] = []
    for group in groups.values():
        targets = [str(target) for target in group.get("targets") or ["Linear"]]
        names = None if "Linear" in targets else Names(targets)
        rules.append(
            (names, _number(group.get("weights") or {}, weights_only=not group.get("input_activations")))
        )
    rules.sort(key=lambda rule: rule[0] is None)  # named layers before the rule for all others
    return rules, _kept(section)


def _number(weights: Mapping[str, Any], *, weights_only: bool) -> Format:
    bits, kind, group = weights.get("num_bits"), weights.get("type"), weights.get("group_size")
    if (kind, bits) == ("float", 4):
        base = MXFP4 if group == 32 else NVFP4
    elif (kind, bits) == ("float", 8):
        base = MXFP8 if group == 32 else FP8
    elif (kind, bits) == ("int", 8):
        base = INT8
    elif (kind, bits) == ("int", 4):
        extra = (16 if weights.get("symmetric", True) else 20) / group if group and group > 0 else 0.0
        return Format("int4", 4 + extra, "bf16" if weights_only else "int8")
    else:
        raise UnknownFact(f"quantization_config: weights of type {kind!r} with {bits!r} bits are not known")
    return Format(base.name, base.bits, "bf16") if weights_only else base


def _integer(section: Mapping[str, Any]) -> _Rules:
    bits, group = (
        section.get("bits", section.get("w_bit")),
        section.get("group_size", section.get("q_group_size")),
    )
    if not isinstance(bits, int) or not isinstance(group, int):
        raise UnknownFact("quantization_config lacks the key bits or group_size, which awq and gptq need")
    zero = bits if section.get("zero_point") or section.get("sym") is False else 0
    extra = (16 + zero) / group if group > 0 else 0.0
    return [(None, Format(f"int{bits}", bits + extra, "bf16"))], _kept(section)


def _bitsandbytes(section: Mapping[str, Any]) -> _Rules:
    if section.get("load_in_8bit") or section.get("_load_in_8bit"):
        return [(None, INT8)], _kept(section)
    if section.get("load_in_4bit") or section.get("_load_in_4bit"):
        # One scale per 64 weights: fp32, or 8 bit with a second level of one fp32 per 256 scales.
        double = section.get("bnb_4bit_use_double_quant")
        return [(None, Format("nf4", 4.127 if double else 4.5, "bf16"))], _kept(section)
    raise UnknownFact("quantization_config: bitsandbytes names neither load_in_4bit nor load_in_8bit")


def _quark(section: Mapping[str, Any]) -> _Rules:
    weight = (section.get("global_quant_config") or {}).get("weight") or {}
    weight = weight[0] if isinstance(weight, list) else weight
    known = {("fp4", 32): MXFP4, ("fp8_e4m3", None): FP8, ("int8", None): INT8}
    key = (str(weight.get("dtype")), weight.get("group_size"))
    if key not in known:
        raise UnknownFact(
            f"quantization_config: quark weights of {key[0]!r} in groups of {key[1]} are not known"
        )
    return [(None, known[key])], _kept(section)

"""GPUs by the names engines, drivers and people use, with the figures of `hardware.toml`."""

import difflib
import functools
import re
import tomllib
from pathlib import Path

import msgspec

from stepline.errors import UnknownFact

_BRANDS = {"nvidia", "amd", "geforce", "instinct", "gpu", "tesla", "radeon"}
_FALLBACK = {"fp4": ("fp4", "fp8", "bf16"), "fp8": ("fp8", "bf16"), "int8": ("int8", "bf16")}


class Gpu(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU as its maker describes it; None and absent keys mean that nobody published the number."""

    name: str
    memory_bytes: float
    bandwidth_bytes_s: float
    peak_flops: dict[str, float]
    """Dense FLOP/s by the type multiplied: bf16, fp8, fp4, int8, fp32."""
    sms: int
    boost_mhz: float | None = None
    """SM clock that it keeps under load while neither heat nor power hold it back."""
    l2_bytes: float | None = None
    smem_bytes: float | None = None
    """Shared memory of one SM."""
    link_bytes_s: float | None = None
    """To the other GPUs of the host, both directions together."""
    allreduce_us_common: dict[int, float] = {}
    """Latency of one all-reduce of 8 KB by tensor-parallel degree, as engines commonly reach it."""
    allreduce_us_fastest: dict[int, float] = {}
    """The quickest anybody measured; only this one may enter a bound."""
    sources: dict[str, str] = {}
    """Letters explained at the top of `hardware.toml`, by field."""

    def peak(self, math: str) -> float:
        """Dense FLOP/s for `math`; a type the GPU cannot multiply runs in the next wider one it can."""
        for dtype in _FALLBACK.get(math, (math,)):
            if dtype in self.peak_flops:
                return self.peak_flops[dtype]
        raise UnknownFact(f"no {math} peak is known for {self.name}; known: {', '.join(self.peak_flops)}")


def find_gpu(name: str) -> Gpu:
    """Return the GPU called `name` by an engine, a driver or a person ("NVIDIA H200", "h200_sxm").

    Raises:
        UnknownFact: No GPU of the data file has that name; the nearest names are given.
    """
    gpus = _by_alias()
    key = _key(name)
    if key in gpus:
        return gpus[key]
    near = difflib.get_close_matches(key, gpus, n=8, cutoff=0)
    names = list(dict.fromkeys(gpus[match].name for match in near))[:3]
    raise UnknownFact(f"no GPU is known as {name!r}; the nearest known: {', '.join(names)}")


@functools.cache
def all_gpus() -> tuple[Gpu, ...]:
    """Return every GPU of the data file, in its order."""
    return tuple(gpu for gpu, _ in _load())


def _key(name: str) -> str:
    words = re.sub(r"[^a-z0-9]+", " ", name.lower()).split()
    joined = " ".join(word for word in words if word not in _BRANDS)
    return re.sub(r"\b(\d+) gb\b", r"\1gb", joined)


@functools.cache
def _by_alias() -> dict[str, Gpu]:
    return {_key(alias): gpu for gpu, aliases in _load() for alias in (gpu.name, *aliases)}


@functools.cache
def _load() -> list[tuple[Gpu, list[str]]]:
    with Path(__file__).with_name("hardware.toml").open("rb") as file:
        rows = tomllib.load(file)["gpu"]
    return [(_gpu(row), row["aliases"]) for row in rows]


def _gpu(row: dict[str, list[object]]) -> Gpu:
    facts = {key: pair for key, pair in row.items() if key not in {"name", "aliases"}}
    values = {key: value for key, (value, _) in facts.items()}
    values["peak_flops"] = {key[5:]: values.pop(key) for key in list(values) if key.startswith("peak_")}
    sources = {key: source for key, (_, source) in facts.items()}
    return msgspec.convert({"name": row["name"], **values, "sources": sources}, Gpu, strict=False)

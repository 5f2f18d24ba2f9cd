"""GPUs by the names engines, drivers and people use, with the figures of `hardware.toml`."""

import difflib
import functools
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from stepline.errors import UnknownFact

_BRANDS = {
    *(
        "nvidia",
        "amd",
        "geforce",
        "instinct",
        "gpu",
        "tesla",
        "radeon",
        "intel",
        "habana",
        "huawei",
        "corporation",
    ),
    *("graphics", "card", "accelerator", "gpus", "npu", "hpu", "the", "tensor", "core"),
}
"""Words of a name that tell no GPU from another."""
_MEMORY_KINDS = {
    "hbm2",
    "hbm2e",
    "hbm3",
    "hbm3e",
    "gddr6",
    "gddr6x",
    "gddr7",
    "vram",
    "ram",
    "of",
    "vf",
    "shared",
}
"""Words that tools add and no sibling is told by: the memory's kind, a virtual function, a shared device."""
_AROUND = re.compile(
    r"^\s*(?:gpu|device)\s*\d+\s*:|\((?!\s*\d+ ?g).*?\)|^\s*\d{1,3}\s*[x×*]\s*|(?:(?<=\s)|(?<=\d))[x×*]\s*\d{1,3}\s*$",
    re.IGNORECASE,
)
"""What stands around a name: an index, an id in brackets, how many there are."""
_SLICE = re.compile(r"\bmig\b|\d+g\.\d+gb|\bvgpu\b|\bgrid\b|\d+[qc]\b$", re.IGNORECASE)
_PCI = re.compile(
    r"(?:0x)?(?:(?P<vendor>10de|1002)[: ](?:0x)?(?P<device>[0-9a-f]{4})|(?P<joined>[0-9a-f]{4})(?P<after>10de|1002))",
    re.IGNORECASE,
)
_SAME_MEMORY = 0.12
"""Share by which a stated size may miss: 80 GB are 85.5e9 bytes to the driver, 141 GB are 150.8e9."""
_FALLBACK = {"fp4": ("fp4", "fp8", "bf16"), "fp8": ("fp8", "bf16"), "int8": ("int8", "bf16")}


class Gpu(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU as its maker describes it; None and absent keys mean that nobody published the number."""

    name: str
    memory_bytes: float
    bandwidth_bytes_s: float
    peak_flops: dict[str, float]
    """Dense FLOP/s by the type multiplied: bf16, fp8, fp4, int8, fp32."""
    sms: int
    """SMs of NVIDIA, compute units of AMD, TPCs of Gaudi, cube cores of Ascend."""
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
    pci: tuple[str, ...] = ()
    """Vendor and device ids, where the PCI ID Repository names it."""
    sources: dict[str, str] = {}
    """Letters explained at the top of `hardware.toml`, by field."""

    def peak(self, math: str) -> float:
        """Dense FLOP/s for `math`; a type the GPU cannot multiply runs in the next wider one it can."""
        for dtype in _FALLBACK.get(math, (math,)):
            if dtype in self.peak_flops:
                return self.peak_flops[dtype]
        raise UnknownFact(f"no {math} peak is known for {self.name}; known: {', '.join(self.peak_flops)}")


def find_gpu(name: str) -> Gpu:
    """The GPU that an engine, a driver, a file or a person calls so ("NVIDIA H200", "8xh200_sxm", "10de:2330").

    A variant that is not listed is never taken for its sibling.

    Raises:
        UnknownFact: No GPU of the data file has that name; the nearest names are given.
    """
    if match := _PCI.fullmatch(name.strip()):
        device = f"{match['vendor'] or match['after']}:{match['device'] or match['joined']}".lower()
        if device in _by_device():
            return _by_device()[device]
    elif _SLICE.search(name):
        raise UnknownFact(f"{name!r} is a slice of a GPU, whose memory, bandwidth and SMs are not known here")
    gpus = _by_alias()
    for key in _keys(name):
        if key in gpus:
            return gpus[key]
        words = key.split()
        plain = " ".join(word for word in words if not _gigabytes(word))
        if plain in gpus and all(_holds(gpus[plain], word) for word in words if _gigabytes(word)):
            return gpus[plain]
    raise UnknownFact(f"no GPU is known as {name!r}; the nearest known: {', '.join(nearest_gpus(name))}")


def nearest_gpus(name: str, most: int = 3) -> list[str]:
    """Names of the known GPUs that are spelled most like it."""
    gpus = _by_alias()
    near = difflib.get_close_matches(_key(name), gpus, n=4 * most, cutoff=0)
    return list(dict.fromkeys(gpus[match].name for match in near))[:most]


@functools.cache
def all_gpus() -> tuple[Gpu, ...]:
    """Return every GPU of the data file, in its order."""
    return tuple(gpu for gpu, _ in _load())


def _keys(name: str) -> Iterator[str]:
    """The name as spelled, then with less of what tools and people put around it."""
    yield _key(name)
    inner = name
    while (shorter := _AROUND.sub(" ", inner)) != inner:
        inner = shorter
    for key in (_key(inner), " ".join(word for word in _key(inner).split() if word not in _MEMORY_KINDS)):
        yield key
        yield _by_joined().get(key.replace(" ", ""), key)


def _key(name: str) -> str:
    words = re.sub(r"[^a-z0-9]+", " ", name.lower()).split()
    joined = " ".join(word for word in words if word not in _BRANDS)
    return re.sub(r"\b(\d+) ?gi?b?\b", r"\1gb", joined)


def _gigabytes(word: str) -> int | None:
    return int(word[:-2]) if re.fullmatch(r"\d{1,3}gb", word) else None


def _holds(gpu: Gpu, word: str) -> bool:
    """Whether the stated size is that of the GPU, counted in 1e9 or in 2^30 bytes."""
    stated = _gigabytes(word) or 0
    return any(abs(stated * unit / gpu.memory_bytes - 1) <= _SAME_MEMORY for unit in (1e9, 2**30))


@functools.cache
def _by_alias() -> dict[str, Gpu]:
    return {_key(alias): gpu for gpu, aliases in _load() for alias in (gpu.name, *aliases)}


@functools.cache
def _by_joined() -> dict[str, str]:
    """Spellings without any space, where one GPU alone has it."""
    joined: dict[str, set[str]] = {}
    for key in _by_alias():
        joined.setdefault(key.replace(" ", ""), set()).add(key)
    return {
        spelled: keys.pop()
        for spelled, keys in joined.items()
        if len({_by_alias()[k].name for k in keys}) == 1
    }


@functools.cache
def _by_device() -> dict[str, Gpu]:
    return {device: gpu for gpu, _ in _load() for device in gpu.pci}


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

"""One setting of an engine: what its releases say of it, and what somebody judged of it."""

import re
from typing import Any

import msgspec

MECHANISMS = (
    "batch limit",
    "KV capacity",
    "state cache",
    "prefix cache",
    "context limit",
    "admission",
    "chunking",
    "graphs",
    "overlap",
    "compilation",
    "attention kernel",
    "GEMM kernel",
    "MoE kernel",
    "number format",
    "speculation",
    "communication",
    "parallel layout",
    "placement",
    "disaggregation",
    "sampling",
    "structured output",
    "LoRA",
    "multimodal",
    "front end",
    "host process",
    "logging",
    "clocks",
)
"""What a setting acts on."""
OPPOSITE = {"raise": "lower", "lower": "raise", "on": "off", "off": "on", "set": "set"}
"""Directions that a value can move in, and the way back; `set` is another choice, with no order."""
CONDITIONS = (
    "moe",
    "speculation",
    "multi_gpu",
    "tp",
    "dp",
    "pp",
    "ep",
    "dp_attention",
    "disaggregation",
    "prefix_reuse",
    "lora",
    "structured_output",
    "multimodal",
    "hybrid_state",
    "sparse_attention",
    "sliding_window",
    "mla",
    "quantised",
    "fp8",
    "fp4",
    "int4",
    "long_context",
    "rocm",
    "cpu",
)
"""What must hold for a setting to matter, besides `setting:NAME`: another setting that is not off."""


class Unknown(msgspec.Struct, frozen=True):
    """A default that nobody knows: of a release that was not read, or computed by the engine."""

    why: str


Version = str
Defaults = tuple[tuple[Version, Any], ...]


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """Names, spellings and defaults as the engine's own releases declare them."""

    engine: str
    name: str
    """As the engine's own code calls it; a key of a JSON-valued argument is `argument.key`."""
    flags: tuple[str, ...] | None = None
    """None for `--name-with-dashes`; `--flag=value` is a flag that stores that value."""
    env: str | None = None
    type: str = "str"
    choices: tuple[Any, ...] = ()
    default: Defaults = ()
    """(release, value from that release on), oldest first."""
    since: Version | None = None
    """First release that has it, where older ones were read; None where all have it."""
    until: Version | None = None
    """Last release that has it."""
    resolved: bool = False
    """True where the engine's own code may write it while it starts."""
    file: str | None = None
    releases: tuple[Version, ...] = ()
    """The releases that were read, oldest first."""

    @property
    def spelled(self) -> tuple[str, ...]:
        """Every flag, without the values that some store."""
        if self.flags is None:
            return () if self.env == self.name or "." in self.name else ("--" + self.name.replace("_", "-"),)
        return tuple(flag.partition("=")[0] for flag in self.flags)

    def default_at(self, version: str | None) -> Any:
        """The default of that release, or Unknown with the reason.

        A release between two that were read and agree has their default; one that is newer, older or undated has none.
        """
        if self.releases == ("any",):
            return self.default[-1][1]
        if version is None:
            return Unknown("the release is not known")
        at = release_key(version)
        read = [release_key(each) for each in self.releases]
        if at not in read and not read[0] < at < read[-1]:
            return Unknown(f"{version} was not read")
        older = max((key for key in read if key <= at), default=read[0])
        newer = min((key for key in read if key >= at), default=read[-1])
        ends = [self._read_default(older), self._read_default(newer)]
        if ends[0] != ends[1] or type(ends[0]) is not type(ends[1]):
            return Unknown(f"{version} was not read, and the releases around it differ")
        return ends[0]

    def _read_default(self, at: "tuple[int, ...]") -> Any:
        if self.since is not None and at < release_key(self.since):
            return Unknown("that release has no such setting")
        if self.until is not None and at > release_key(self.until):
            return Unknown("that release has no such setting")
        value = next((value for since, value in reversed(self.default) if release_key(since) <= at), None)
        if isinstance(value, dict) and value.get("computed") is True:
            return Unknown("the engine computes it")
        return value


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """What a setting does to decode speed."""

    name: str
    acts_on: str
    relieves: dict[str, tuple[str, ...]]
    """Direction to the rule codes of the causes that it takes away; the way back brings them about."""
    when: str | None = None
    """What must hold for it to matter at all: one of CONDITIONS or `setting:NAME`."""
    harmless: str
    """When it costs nothing, in words."""
    cost: str
    """What a change takes, besides the value."""
    source: str | None = None
    """Where it was read; None for the source of the whole file."""

    @property
    def brings(self) -> dict[str, tuple[str, ...]]:
        """Direction to the causes that it brings about: the way back of what it relieves."""
        return {OPPOSITE[direction]: causes for direction, causes in self.relieves.items()}

    def direction_for(self, cause: str) -> str | None:
        """The way to move it against a cause; None where it does not help."""
        return next((way for way, causes in self.relieves.items() if cause in causes), None)


_RELEASE = re.compile(r"v?(\d+(?:\.\d+)*)(?:\.?post(\d+))?")
_PARTS = 4


def release_key(version: str) -> tuple[int, ...]:
    """`0.5.12.post1` as numbers that sort; build labels (`+cu130`) and development marks fall away."""
    found = _RELEASE.match(version)
    if found is None:
        return (0,) * (_PARTS + 1)
    parts = [int(part[:9]) for part in found[1].split(".")][:_PARTS]
    return (*parts, *(0,) * (_PARTS - len(parts)), int((found[2] or "0")[:9]))

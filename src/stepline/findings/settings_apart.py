"""In what two runs differ: start arguments where both list them, else facts of the server, and the environment."""

from collections.abc import Mapping

import msgspec

from stepline.facts.arguments import family_of, kind_of
from stepline.facts.levers import find_lever
from stepline.findings.comparison import KnobChange
from stepline.findings.diagnosis import TargetView
from stepline.findings.knobs import changed_knobs
from stepline.model.picture.picture import Picture

ENVIRONMENT = "environment"
"""Variables that were set together are one thing tried."""
SAME_AS_ABSENT = frozenset({"None", "False", "auto", ""})
"""Values that mean the same as not naming the argument: settings are listed whole or where they differ from default."""


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One thing in which two runs differ."""

    setting: str
    names: tuple[str, ...]
    """The arguments that make it up."""
    before: str | None
    after: str | None

    @property
    def text(self) -> str:
        """`name before → after`."""
        if self.before is None and self.after is None:
            return self.setting
        return f"{self.setting} {self.before or 'not set'} → {self.after or 'not set'}"


def differences(
    before: Picture, after: Picture, targets: tuple[TargetView, TargetView]
) -> tuple[Difference, ...]:
    """Every thing in which two runs are known to differ; what follows from another difference is none of its own."""
    ours, theirs = (_arguments(picture) for picture in (before, after))
    if ours and theirs:
        found = _apart(ours, theirs)
        versions = (before.target.version, after.target.version)
        if before.target.engine != after.target.engine:
            found = {"engine": (before.target.engine, after.target.engine)}
        elif len({version for version in versions if version is not None}) > 1:
            found["version"] = versions
    else:
        found = {
            change.name: (change.before, change.after)
            for change in changed_knobs(*targets)
            if change.before is not None and change.after is not None
        }
        models = [_last(target.model) for target in targets]
        if all(models) and models[0] != models[1]:
            found["model"] = (models[0], models[1])
        gpus = [target.gpu for target in targets]
        if all(gpus) and gpus[0] != gpus[1]:
            found["gpu"] = (gpus[0], gpus[1])
        if before.run.decodes and after.run.decodes:
            found |= _apart(_observed(before), _observed(after))
    found |= _served_with(before, after)
    primary = {name: values for name, values in found.items() if kind_of(name) == "setting"}
    used = primary or {
        name: v for name, v in found.items() if kind_of(name) == "follows" and name not in POOLS
    }
    used |= _apart(_environment(before), _environment(after))
    return _by_family(used, frozenset(_environment(before)) | frozenset(_environment(after)))


POOLS = frozenset({"kv_capacity_tokens", "kv_pool_bytes", "weight_bytes"})
"""They differ by a percent from start to start."""


def changes(one: Picture, other: Picture, targets: tuple[TargetView, TargetView]) -> tuple[KnobChange, ...]:
    """The differences with what each acts on."""
    return tuple(_change(apart) for apart in differences(one, other, targets))


def _change(apart: Difference) -> KnobChange:
    levers = [lever for name in apart.names if (lever := find_lever(name)) is not None]
    return KnobChange(
        name=apart.setting,
        before=apart.before or "not set",
        after=apart.after or "not set",
        acts_on=levers[0].acts_on if levers else None,
        causes=tuple(dict.fromkeys(code for lever in levers for code in (*lever.causes, *lever.caused))),
    )


def _apart(ours: Mapping[str, str], theirs: Mapping[str, str]) -> dict[str, tuple[str | None, str | None]]:
    return {
        name: (ours.get(name), theirs.get(name))
        for name in dict.fromkeys((*ours, *theirs))
        if not _equal(ours.get(name), theirs.get(name))
    }


def _equal(one: str | None, other: str | None) -> bool:
    if one == other:
        return True
    return (one or "") in SAME_AS_ABSENT and (other or "") in SAME_AS_ABSENT


def _arguments(picture: Picture) -> dict[str, str]:
    start = picture.run.start
    return {} if start is None else start.arguments


def _environment(picture: Picture) -> dict[str, str]:
    start = picture.run.start
    return {} if start is None else start.environment


def _served_with(before: Picture, after: Picture) -> dict[str, tuple[str | None, str | None]]:
    """What the client's tool set on the server, where no list of arguments tells it."""
    ours, theirs = (_pairs(picture) for picture in (before, after))
    return _apart(ours, theirs) if ours and theirs else {}


def _observed(picture: Picture) -> dict[str, str]:
    """What the scheduler's lines show of a server that nobody described: drafts that were accepted."""
    if not picture.run.decodes or picture.run.server.speculative is not None:
        return {}
    drafts = any(r.accept_length is not None or r.accept_rate is not None for r in picture.run.decodes)
    return {"speculation": "seen in the log"} if drafts else {}


def _pairs(picture: Picture) -> dict[str, str]:
    told = next((level.served_with for level in picture.run.levels if level.served_with), "")
    return dict(part.split("=", 1) for part in told.split(", ") if "=" in part)


def _by_family(
    found: Mapping[str, tuple[str | None, str | None]], environment: frozenset[str]
) -> tuple[Difference, ...]:
    families: dict[str, list[str]] = {}
    for name in found:
        families.setdefault(ENVIRONMENT if name in environment else family_of(name), []).append(name)
    return tuple(_difference(family, names, found) for family, names in families.items())


def _difference(
    family: str, names: list[str], found: Mapping[str, tuple[str | None, str | None]]
) -> Difference:
    alone = len(names) == 1 and family != ENVIRONMENT
    before, after = (
        found[names[0]][side]
        if alone
        else ", ".join(f"{name}={value}" for name in names if (value := found[name][side]) is not None)
        or None
        for side in (0, 1)
    )
    return Difference(setting=names[0] if alone else family, names=tuple(names), before=before, after=after)


def _last(model: str | None) -> str:
    return (model or "").rstrip("/").rpartition("/")[2]

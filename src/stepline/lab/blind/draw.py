"""Draws cases: the same seed, number and plan give the same case on every machine."""

import functools
import random
from typing import Any

import msgspec

from stepline.errors import UsageError
from stepline.lab.blind import arguments, load, machine
from stepline.lab.blind.arguments import Argument
from stepline.lab.blind.change import Change, Drawn, Kind, Server

KINDS: dict[Kind, int] = {"argument": 4, "environment": 1, "machine": 3, "load": 3}
"""How often each kind comes: an engine has some hundred arguments, most of other models than this; a machine has few
states."""
CONTEXT_OF = 3
"""One case in this many is of another model or other lengths, and its twin too."""
TWO_OF = 6
"""One case in this many has two changes."""


class Plan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is drawn from. It names no cause and no cost."""

    engine: str
    version: str
    gpu: str | None
    models: dict[str, dict[str, Any]]
    """config.json by name; the first is the twin's."""
    twin: Server
    arguments: tuple[Argument, ...]
    environment: dict[str, tuple[str, ...]] = {}
    """Variables that the engine's release reads, and values to try."""


def draw_case(plan: Plan, seed: int, number: int) -> Drawn:
    """Case `number` of a seed.

    Raises:
        UsageError: the plan leaves nothing to draw.
    """
    rng = random.Random(f"{plan.engine} {plan.version} {seed} {number}")  # noqa: S311 - a draw, not a secret
    context = (_context(plan, rng),) if rng.randrange(CONTEXT_OF) == 0 else ()
    changes: list[Change] = []
    for _ in range(2 if rng.randrange(TWO_OF) == 0 else 1):
        change = _one(plan, rng)
        if change.name not in [made.name for made in changes]:
            changes.append(change)
    twin = functools.reduce(applied, context, plan.twin)
    server = functools.reduce(applied, changes, twin)
    return Drawn(seed=seed, number=number, context=context, changes=tuple(changes), server=server, twin=twin)


def _context(plan: Plan, rng: random.Random) -> Change:
    """What case and twin have alike: a model, or lengths. Another length is no fault; what it meets may be one."""
    others = [name for name in plan.models if name != plan.twin.model]
    if others and rng.randrange(2):
        return Change(kind="model", name="model", value=rng.choice(others))
    return load.length(rng, plan.twin)


def _one(plan: Plan, rng: random.Random) -> Change:
    can = list(arguments.drawable(plan.arguments))
    kinds = {
        kind: weight
        for kind, weight in KINDS.items()
        if {"argument": can, "environment": plan.environment}.get(kind, True)
    }
    if not kinds:
        raise UsageError("the plan has no argument and no variable to draw")
    match rng.choices(list(kinds), list(kinds.values()))[0]:
        case "argument":
            group = rng.choice(sorted({argument.group for argument in can}))
            return arguments.change(rng.choice([each for each in can if each.group == group]), rng)
        case "environment":
            name = rng.choice(sorted(plan.environment))
            return Change(kind="environment", name=name, value=rng.choice(plan.environment[name]))
        case "machine":
            return machine.change(rng, gpu=plan.gpu is not None)
        case _:
            return load.change(rng)


def applied(server: Server, change: Change) -> Server:
    """A server with one change made."""
    replace = msgspec.structs.replace
    match change.kind, change.name:
        case "argument", flag:
            return replace(server, flags=(*server.flags, flag, *([change.value] if change.value else [])))
        case "environment", name:
            return replace(server, environment=server.environment | {name: change.value})
        case "machine", "cores":
            return replace(server, cores=int(change.value))
        case "machine", _:
            return replace(server, neighbour=change.value)
        case "model", _:
            return replace(server, model=change.value)
        case _, "input-tokens":
            return replace(server, input_tokens=int(change.value))
        case _, "output-tokens":
            return replace(server, output_tokens=int(change.value))
        case _, "shared-prefix":
            return replace(server, shared_prefix_tokens=int(change.value))
        case _, "beside":
            return replace(server, beside=load.BESIDE[int(change.value)])
        case _, "temperature":
            return replace(server, temperature=float(change.value))
        case _, name:
            value = float(change.value)
            whole = name == "top_k"
            return replace(server, sampling=server.sampling | {name: int(value) if whole else value})

"""Changes of an engine's arguments, from its own list: any other choice, a flipped switch, a number up or down.

Which arguments matter is not known here. Left out are only those that would break the recording itself: where the
server listens and who may ask it, where files lie, which machines take part, and the model itself.
"""

import math
import random
import re
from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

from stepline.lab.blind.change import Change

Type = Literal["bool", "int", "float", "str", "json"]


class Argument(msgspec.Struct, frozen=True, kw_only=True):
    """One argument as the engine's release declares it. `default` is None where it is None or not a constant."""

    flag: str
    """Its first spelling, `--max-running-requests`."""
    type: Type
    choices: tuple[str, ...] = ()
    default: str | None = None
    negation: str | None = None
    """The flag that switches it off, where the default is on."""
    group: str = ""
    """File of the engine that declares it: draws are even over these, as most arguments are of a few of them."""


_LISTENS = (
    r"(fastapi-)?(host|port|root-path|uds|nccl-port|grpc\S*|ssl\S*|enable-ssl\S*|allow(ed|-)\S*)|"
    r"disable-fastapi-docs"
)
_ASKS = r"\S*(api-key|admin|token-auth|middleware|log-config\S*)"
_LIES = r"\S*(path|dir|directory|folder|file|url|uri|address|addr|ip|interface|hosts?)"
_MACHINES = (
    r"nnodes|node-rank|dist-\S*|master-\S*|headless|data-parallel-(address|rpc-port|hybrid-lb|external-lb)|"
    r"base-gpu-id|gpu-id-step|device|device-ids"
)
_MODEL = (
    r"model|model-path|served-model-name|(code-)?revision|tokenizer(-revision)?|load-format|hf-\S*|config|"
    r"trust-remote-code|is-embedding|task|runner|convert|skip-tokenizer-init|help|version|show-\S*|collect-\S*"
)
_RECORDS = (
    r"\S*(otlp|trace|tracing|crash-dump|dump|profil)\S*|disaggregation\S*|kv-transfer\S*|kv-events\S*|"
    r"enable-metrics\S*"
)
NOT_DRAWN = re.compile(rf"^--({'|'.join((_LISTENS, _ASKS, _LIES, _MACHINES, _MODEL, _RECORDS))})$")
"""Arguments that the recording depends on, or that ask for another machine or file. No word of cost is in here."""
FACTORS = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 2, 4, 8, 16)
"""What a number with a default is multiplied by."""
LARGEST = 65536
"""A whole number without a default is drawn between 1 and this, evenly on a logarithmic scale."""


def drawable(arguments: Iterable[Argument]) -> Iterator[Argument]:
    """Arguments that have another value to try: a free text or a JSON document has none that could be drawn."""
    for argument in arguments:
        if NOT_DRAWN.match(argument.flag):
            continue
        if argument.type in ("bool", "int", "float") or len(set(argument.choices) - {argument.default}) > 0:
            yield argument


def change(argument: Argument, draw: random.Random) -> Change:
    """Another value of one argument than its default, as it would be typed."""
    if argument.choices:
        value = draw.choice([choice for choice in argument.choices if choice != argument.default])
        return Change(kind="argument", name=argument.flag, value=value)
    if argument.type == "bool":
        on = argument.default == "True"
        return Change(
            kind="argument", name=(argument.negation or argument.flag) if on else argument.flag, value=""
        )
    return Change(kind="argument", name=argument.flag, value=_number(argument, draw))


def _number(argument: Argument, draw: random.Random) -> str:
    default = _finite(argument.default)
    if argument.type == "float":
        if default is None or not default:
            return f"{draw.uniform(0.05, 0.95):.3g}"
        low = default * draw.choice(FACTORS)
        return f"{min(low, draw.uniform(0.05, 0.95)) if 0 < default < 1 else low:.3g}"
    if default is None or default < 1:  # none, or 0 and -1, which stand for "not set" in both engines
        return str(round(math.exp(draw.uniform(0, math.log(LARGEST)))))
    return str(
        max(1, round(default * draw.choice([f for f in FACTORS if round(default * f) not in (0, default)])))
    )


def _finite(text: str | None) -> float | None:
    try:
        value = float(text) if text is not None else None
    except ValueError:
        return None
    return value if value is not None and math.isfinite(value) else None

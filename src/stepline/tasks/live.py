"""What may be done to a running server, and for how long."""

import re
from pathlib import Path

import msgspec

from stepline.errors import UsageError
from stepline.plan.experiment import Limits
from stepline.plan.policy import MIN_CONTEXT
from stepline.sources.surface import Found
from stepline.tasks.setup import UNTOLD, SetupRequest

MAX_TEMPERATURE = 2.0
"""Both engines refuse more, as the OpenAI API does."""
MAX_STREAMS = 4096
RESTART_WAIT_S = 600.0
"""Longest time that a restarted server may take to answer."""
_TIME = re.compile(r"(\d+(?:\.\d+)?)(s|m|min|h)?")
_SECONDS = {None: 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


class LiveRequest(msgspec.Struct, frozen=True, kw_only=True):
    """How a running server is recorded. The defaults here are those of the command line and of the Python API."""

    budget_s: float = 180.0
    """Server time to spend."""
    concurrency: tuple[int, ...] = ()
    """Levels to drive; empty leaves them to the planner."""
    input_tokens: int = 512
    """Prompt length of the load."""
    output_tokens: int = 192
    """Answer length of the load."""
    shared_prefix_tokens: int = 0
    """Opening that all prompts share, for a prefix cache to find; 0 makes every prompt unique."""
    temperature: float = 0.0
    """Of the sampling; what speculation gets accepted depends on it."""
    sampling: dict[str, int | float | bool] = {}
    """Further sampling options of every request, by the engine's own names."""
    headers: tuple[str, ...] = ()
    """`Name: value`, sent with every request and never stored."""
    dcgm: str | None = None
    """URL of a DCGM exporter beside a remote server."""
    log: Path | None = None
    """The server's log; None looks for it."""
    load: bool | None = None
    """Drive load; None only where nobody else uses the server."""
    profile: bool | None = None
    """Take a short trace when it decides something; None only where nobody else uses the server."""
    flush: bool = False
    """Empty the server's prefix cache before the load."""
    setup: SetupRequest = UNTOLD
    """What is known of the server beside what it says itself."""


def seconds(text: str, option: str = "--budget") -> float:
    """`90`, `90s`, `3m` or `0.5h` in seconds; `option` is what an error names.

    Raises:
        UsageError: for anything else, or no time at all.
    """
    found = _TIME.fullmatch(text.strip())
    if found is None or float(found[1]) <= 0:
        raise UsageError(f"{option} {text}: give a time such as 90s or 3m")
    return float(found[1]) * _SECONDS[found[2]]


def levels(text: str | None) -> tuple[int, ...]:
    """`1,8,32` as numbers of streams.

    Raises:
        UsageError: for anything that is no list of numbers above zero.
    """
    if text is None:
        return ()
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() and 0 < int(word) <= MAX_STREAMS for word in words):
        raise UsageError(
            f"--concurrency {text}: give numbers of streams from 1 to {MAX_STREAMS}, for example 1,8,32"
        )
    return tuple(int(word) for word in words)


def check_live(request: LiveRequest) -> None:
    """Refuse a budget or levels that cannot be right before the server is asked anything.

    Raises:
        UsageError: as `seconds` and `levels` do for what is typed.
    """
    if not 0 < request.budget_s < float("inf"):
        seconds(f"{request.budget_s:g}")
    levels(",".join(map(str, request.concurrency)) or None)


def limits_of(request: LiveRequest, found: Found, *, profile: bool) -> Limits:
    """What the user allows and this server can do.

    Raises:
        UsageError: when an option cannot be right.
    """
    if not 0 <= request.temperature <= MAX_TEMPERATURE:
        raise UsageError(
            f"--temperature {request.temperature:g}: give a number from 0 to {MAX_TEMPERATURE:g}"
        )
    if not 0 <= request.shared_prefix_tokens < request.input_tokens:
        raise UsageError(
            f"--shared-prefix-tokens {request.shared_prefix_tokens}: "
            f"give fewer than the prompt's {request.input_tokens}"
        )
    for name in ("input_tokens", "output_tokens"):
        if getattr(request, name) < 1:
            raise UsageError(f"--{name.replace('_', '-')} {getattr(request, name)}: give a number above zero")
    most = found.max_context_tokens
    if most is not None and request.output_tokens > (longest := most - MIN_CONTEXT):
        raise UsageError(
            f"--output-tokens {request.output_tokens}: the server takes {most} tokens with the prompt; "
            f"give {longest} at most"
            if longest > 0
            else f"the server takes {most} tokens with the prompt, too few for a load"
        )
    return Limits(
        budget_s=request.budget_s,
        concurrency=request.concurrency,
        input_tokens=request.input_tokens,
        output_tokens=request.output_tokens,
        context_tokens=found.max_context_tokens,
        profile=profile and request.profile is not False,
    )

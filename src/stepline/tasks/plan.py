"""What a diagnosis would run on a server, and what each run would decide; nothing is loaded."""

from typing import NamedTuple

from stepline.plan.experiment import Experiment
from stepline.plan.policy import outline
from stepline.sources.address import is_local, parse
from stepline.sources.live.session import look_at
from stepline.tasks.live import LiveRequest, check_live, limits_of


class Planned(NamedTuple):
    """The experiments in order, and the server time that they have to share."""

    experiments: tuple[Experiment, ...]
    budget_s: float


def plan(url: str, request: LiveRequest) -> Planned:
    """Ask the server what it is, and outline.

    Raises:
        SteplineError: nobody answers, or the request cannot be right.
    """
    check_live(request)
    address = parse(url, request.headers)
    found = look_at(address)
    limits = limits_of(request, found, profile=found.profile is not None and is_local(address))
    return Planned(tuple(outline(limits)), limits.budget_s)

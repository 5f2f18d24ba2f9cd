"""What a campaign draws and how it is run; light, so that the command line takes its defaults from here."""

from pathlib import Path

import msgspec

from stepline.lab.blind.draw import Plan


class CampaignRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What to draw and how to run it."""

    folder: Path
    plan: Plan
    seed: int
    cases: int = 4
    """Numbers 0 to this of the seed; those that the folder holds are not run again."""
    wave: int = 3
    """Servers that start together and wait idle while one of them is loaded."""
    only: tuple[int, ...] = ()
    """These numbers of the seed, instead of the first."""
    ready_s: float = 420.0
    level_s: float = 7.0
    """Length of each measurement of what is true."""
    budget_s: float = 60.0
    """Of server time for the recording that is diagnosed."""
    port: int = 31000

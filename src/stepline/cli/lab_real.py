"""How `stepline lab run` has a real engine recorded: as `stepline record` records any server."""

import sys
from pathlib import Path

import msgspec

from stepline.cli.live import record_server
from stepline.cli.live_arguments import defaults
from stepline.lab.real.matrix import Load


def record(url: str, folder: Path, log: Path, load: Load) -> None:
    """Record the server at `url` into `folder`; progress goes to stderr.

    Raises:
        SteplineError: nobody answers, or the load cannot be right.
    """
    print(f"== {folder.stem}", file=sys.stderr, flush=True)
    options = msgspec.structs.asdict(load) | {"concurrency": ",".join(map(str, load.concurrency)) or None}
    record_server(url, folder, defaults(**options, log=str(log), load=True, quiet=False))

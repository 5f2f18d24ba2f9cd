"""stepline finds why an LLM server decodes slower than its hardware allows, and proves it.

import stepline
run = stepline.read(["capture/"])
answer = stepline.diagnose(run, gpu="h200")
print(answer.verdict, [finding.code for finding in answer.findings])
"""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from stepline.version import __version__

if TYPE_CHECKING:
    from stepline.evidence.run import Run
    from stepline.findings.diagnosis import Diagnosis
    from stepline.model.roofline.decode_floor import Floor

__all__ = ["__version__", "diagnose", "read", "record", "roofline"]


# Everything else is imported when called: `import stepline` and `stepline --help` stay quick.


def read(paths: Iterable[str | Path]) -> "Run":
    """Read files and folders of evidence, recognised by content.

    Raises:
        stepline.errors.UsageError: a path does not exist.
        stepline.errors.UnreadableEvidence: nothing could be read.
    """
    from stepline.sources.read import read as read_paths  # noqa: PLC0415

    return read_paths(paths)


def record(
    url: str,
    folder: str | Path,
    *,
    budget: str = "3m",
    concurrency: str | None = None,
    headers: Iterable[str] = (),
    load: bool | None = None,
    profile: bool | None = None,
) -> "Run":
    """Record a running server into `folder`, as `stepline record` does, and read it.

    Args:
        url: the server, `http://host:port`.
        folder: where the capture goes; it stays readable when this is interrupted.
        budget: server time to spend, `90s` or `3m`.
        concurrency: levels to drive, `1,8,32`, instead of the planner's choice.
        headers: `Name: value`, sent with every request and never stored.
        load: drive load; None only where nobody else uses the server.
        profile: take a trace when it decides something.

    Raises:
        stepline.errors.SteplineError: nobody answers, or an argument cannot be right.
    """
    from stepline.cli.live import record_server  # noqa: PLC0415
    from stepline.cli.live_arguments import defaults  # noqa: PLC0415

    chosen = {"budget": budget, "concurrency": concurrency, "header": list(headers), "load": load}
    record_server(url, Path(folder), defaults(**chosen, profile=profile, quiet=True))
    return read([folder])


def diagnose(
    run: "Run",
    *,
    model: str | None = None,
    gpu: str | None = None,
    tp: int | None = None,
    context_length: int | None = None,
) -> "Diagnosis":
    """Diagnose a run; the settings are used only where the evidence does not say."""
    from stepline.findings.diagnose import diagnose as diagnose_picture  # noqa: PLC0415
    from stepline.model.picture.assess import assess  # noqa: PLC0415
    from stepline.model.picture.picture import Setup  # noqa: PLC0415

    return diagnose_picture(assess(run, Setup(model=model, gpu=gpu, tp=tp, context_length=context_length)))


def roofline(
    model: str,
    gpu: str,
    *,
    batch: float,
    context_tokens: float,
    tp: int = 1,
    ep: int = 1,
    routing: str = "expected",
) -> "Floor":
    """The floor of a decode step of a bundled model: `routing` is expected (uniform) or strict (one token's experts).

    Raises:
        stepline.errors.UnknownFact: no data file describes the model or the GPU, or the layout is impossible.
    """
    from stepline.facts.catalogue import find_model  # noqa: PLC0415
    from stepline.facts.hardware import find_gpu  # noqa: PLC0415
    from stepline.model.roofline.architecture import parse_config  # noqa: PLC0415
    from stepline.model.roofline.decode_floor import decode_floor  # noqa: PLC0415
    from stepline.model.roofline.layout import Layout  # noqa: PLC0415

    known = find_model(model)
    return decode_floor(
        parse_config(known.config, name=known.hub_id),
        find_gpu(gpu),
        Layout(tp=tp, ep=ep),
        batch=batch,
        context_tokens=context_tokens,
        routing="strict" if routing == "strict" else "expected",
    )

"""stepline finds why an LLM server decodes slower than its hardware allows, and proves it.

import stepline
evidence = stepline.read("capture/")
answer = stepline.diagnose(evidence, gpu="h200")
print(answer.verdict, [finding.code for finding in answer.findings])

Every function is one call into `stepline.tasks`, as the command of its name is: the answers are the same.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from stepline.version import __version__

if TYPE_CHECKING:
    from stepline.evidence.run import Run
    from stepline.findings.diagnosis import Diagnosis
    from stepline.model.roofline.decode_floor import Floor
    from stepline.tasks.picture import Evidence

__all__ = ["__version__", "diagnose", "read", "record", "roofline"]


# Everything else is imported when called: `import stepline` and `stepline --help` stay quick.


def read(paths: str | Path | Iterable[str | Path]) -> "Evidence":
    """Read a file or folder of evidence, or several of one server, recognised by content; traces are condensed.

    Raises:
        stepline.errors.UsageError: a path does not exist.
        stepline.errors.UnreadableEvidence: nothing could be read.
    """
    from stepline.tasks import picture  # noqa: PLC0415

    return picture.read(paths)


def record(
    url: str,
    folder: str | Path,
    *,
    budget: str = "3m",
    concurrency: str | None = None,
    headers: Iterable[str] = (),
    load: bool | None = None,
    profile: bool | None = None,
) -> "Evidence":
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
    evidence: "Evidence | Run | str | Path | Iterable[str | Path]",
    *,
    model: str | None = None,
    gpu: str | None = None,
    tp: int | None = None,
    ep: int | None = None,
    dp: int | None = None,
    pp: int | None = None,
    context_length: int | None = None,
    calibration: str | Path | None = None,
) -> "Diagnosis":
    """Diagnose what `read` gave, a saved run, or paths; the settings are used only where the evidence does not say.

    Args:
        evidence: what `read` or `record` returned, a `Run`, or what `read` takes.
        model: a config.json, a model folder, or the name of a bundled model.
        gpu: as drivers or people call it, `h200`.
        tp: tensor-parallel size.
        ep: expert-parallel size.
        dp: data-parallel size.
        pp: pipeline-parallel size.
        context_length: configured longest context in tokens. Which kernels follow it is decided while a trace is
            read, so evidence with a trace and without this setting is read again.
        calibration: what `stepline lab calibrate` wrote; None takes the one kept for this machine, if there.

    Raises:
        stepline.errors.SteplineError: a setting cannot be right, or nothing could be read.
    """
    from stepline.tasks.diagnose import diagnose as answer  # noqa: PLC0415
    from stepline.tasks.setup import SetupRequest  # noqa: PLC0415

    setup = SetupRequest(
        model=model,
        gpu=gpu,
        tp=tp,
        ep=ep,
        dp=dp,
        pp=pp,
        context_length=context_length,
        calibration=None if calibration is None else str(calibration),
    )
    return answer(evidence, setup)


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

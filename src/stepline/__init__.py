"""stepline finds why an LLM server decodes slower than its hardware allows, and proves it.

import stepline
evidence = stepline.read("capture/")
answer = stepline.diagnose(evidence, gpu="h200")
print(answer.verdict, [finding.code for finding in answer.findings])

Every function is one call into `stepline.tasks`, as the command of its name is: the answers are the same.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, Unpack

from stepline.version import __version__

if TYPE_CHECKING:
    from stepline.evidence.evidence import Evidence
    from stepline.evidence.run import Run
    from stepline.findings.comparison import Comparison
    from stepline.findings.diagnosis import Diagnosis
    from stepline.model.roofline.decode_floor import Floor
    from stepline.tasks.compare import Side
    from stepline.tasks.setup import Settings

__all__ = ["__version__", "compare", "diagnose", "read", "record", "roofline"]


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
    input_tokens: int = 512,
    output_tokens: int = 192,
    shared_prefix_tokens: int = 0,
    temperature: float = 0.0,
    sampling: Mapping[str, int | float | bool] = MappingProxyType({}),
    headers: Iterable[str] = (),
    dcgm: str | None = None,
    log: str | Path | None = None,
    load: bool | None = None,
    profile: bool | None = None,
    flush: bool = False,
    **settings: Unpack["Settings"],
) -> "Evidence":
    """Record a running server into `folder`, as `stepline record` does, and read it, its trace included.

    Args:
        url: the server, `http://host:port`.
        folder: where the capture goes; it stays readable when this is interrupted.
        budget: server time to spend, `90s` or `3m`.
        concurrency: levels to drive, `1,8,32`, instead of the planner's choice.
        input_tokens: prompt length of the load.
        output_tokens: answer length of the load.
        shared_prefix_tokens: opening that all prompts share, for a prefix cache to find.
        temperature: of the sampling.
        sampling: further sampling options of every request, by the engine's own names.
        headers: `Name: value`, sent with every request and never stored.
        dcgm: URL of a DCGM exporter beside a remote server.
        log: the server's log, where it is not found by itself.
        load: drive load; None only where nobody else uses the server.
        profile: take a trace when it decides something; None only where nobody else uses the server.
        flush: empty the server's prefix cache before the load.
        settings: as `diagnose` takes them; the planner looks at what is known by then.

    Raises:
        stepline.errors.SteplineError: nobody answers, or an argument cannot be right.
        stepline.errors.Interrupted: Ctrl-C after something was measured.
    """
    from stepline.tasks import live, picture, setup  # noqa: PLC0415
    from stepline.tasks import record as task  # noqa: PLC0415

    known = setup.SetupRequest(**settings)
    request = live.LiveRequest(
        budget_s=live.seconds(budget),
        concurrency=live.levels(concurrency),
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        shared_prefix_tokens=shared_prefix_tokens,
        temperature=temperature,
        sampling=dict(sampling),
        headers=tuple(headers),
        dcgm=dcgm,
        log=None if log is None else Path(log),
        load=load,
        profile=profile,
        flush=flush,
        setup=known,
    )
    task.record(url, Path(folder), request)
    return picture.read(folder, known)


def diagnose(
    evidence: "Evidence | Run | str | Path | Iterable[str | Path]", **settings: Unpack["Settings"]
) -> "Diagnosis":
    """Diagnose what `read` or `record` gave, a saved run, or paths.

    Args:
        evidence: what `read` or `record` returned, a `Run`, or what `read` takes.
        settings: each is used only where the evidence does not say it: `model` (a config.json, a model folder or the
            name of a bundled model), `gpu` (as drivers or people call it), the sizes `tp`, `ep`, `dp` and `pp`,
            `context_length` (configured, in tokens; evidence with a trace is read again by it, as it decides which
            kernels follow the context), and `calibration` (what `stepline lab calibrate` wrote; without it the one
            kept for this machine, if there).

    Raises:
        stepline.errors.SteplineError: a setting cannot be right, or nothing could be read.
    """
    from stepline.tasks import diagnose as task  # noqa: PLC0415
    from stepline.tasks.setup import SetupRequest  # noqa: PLC0415

    return task.diagnose(evidence, SetupRequest(**settings))


def compare(
    before: "Side | Path | Iterable[Side | Path]",
    after: "Side | Path | Iterable[Side | Path]",
    *,
    effect_percent: float = 3.0,
    **settings: Unpack["Settings"],
) -> "Comparison":
    """The verdict on a change, with its interval: better, worse, same or inconclusive.

    Args:
        before: a run, or repeats of it: paths, or what `read` gave of each.
        after: the same, with the change.
        effect_percent: change that counts as none, and that repeats are asked for to see.
        settings: as `diagnose` takes them, of both sides.

    Raises:
        stepline.errors.SteplineError: a side or setting cannot be right, or nothing could be read.
    """
    from stepline.tasks import compare as task  # noqa: PLC0415
    from stepline.tasks.setup import SetupRequest  # noqa: PLC0415

    request = task.CompareRequest(
        before=task.side_of(before),
        after=task.side_of(after),
        effect_percent=effect_percent,
        setup=SetupRequest(**settings),
    )
    return task.compare_runs(request)


def roofline(
    model: str | Path,
    gpu: str,
    *,
    batch: int,
    context_tokens: int = 8192,
    tp: int = 1,
    ep: int = 1,
    dp: int = 1,
    pp: int = 1,
    dp_attention: bool = False,
    context_length: int | None = None,
    kv_dtype: str = "auto",
    draft_tokens: int = 0,
    accept_length: float = 1.0,
    routing: Literal["expected", "strict"] = "expected",
) -> "Floor":
    """The floor of a decode step, as `stepline roofline` gives it.

    Args:
        model: a bundled name, hub id, config.json or model folder.
        gpu: as drivers or people call it, `h200`.
        batch: running sequences of a rank.
        context_tokens: live tokens of a sequence.
        tp: tensor-parallel GPUs.
        ep: GPUs that hold whole experts.
        dp: data-parallel ranks.
        pp: pipeline stages.
        dp_attention: the dp ranks share the tp GPUs.
        context_length: configured longest context in tokens, for work that follows it.
        kv_dtype: `fp8`, `bf16` or `fp4`; `auto` is the model's.
        draft_tokens: speculative tokens a step.
        accept_length: tokens that a step yields.
        routing: expected (uniform), or strict (one token's experts: the only floor that can prove anything).

    Raises:
        stepline.errors.UsageError: a number cannot be right.
        stepline.errors.UnknownFact: no data file describes the model or the GPU, or the layout is impossible.
    """
    from stepline.tasks import roofline as task  # noqa: PLC0415

    request = task.RooflineRequest(
        model=str(model),
        gpu=gpu,
        tp=tp,
        ep=ep,
        dp=dp,
        pp=pp,
        dp_attention=dp_attention,
        batches=(batch,),
        context_tokens=context_tokens,
        context_length=context_length,
        kv_dtype=kv_dtype,
        draft_tokens=draft_tokens,
        accept_length=accept_length,
    )
    point = task.roofline(request).points[0]
    return {"expected": point.expected, "strict": point.strict}[routing]

"""A campaign of blind cases: draw, start, record, diagnose, seal the answer; only then measure what is true of it."""

import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from stepline.errors import SteplineError, UsageError
from stepline.findings.diagnosis import Diagnosis
from stepline.lab.blind.change import Drawn, Server
from stepline.lab.blind.draw import draw_case
from stepline.lab.blind.seal import append, digest, entries, verify
from stepline.lab.blind.stand import Stand
from stepline.sources.address import parse
from stepline.sources.http import Http
from stepline.sources.live.session import Session, look_at, wait_idle
from stepline.sources.load.level import LevelPlan
from stepline.tasks.campaign_request import CampaignRequest
from stepline.tasks.diagnose import diagnose
from stepline.tasks.live import LiveRequest
from stepline.tasks.progress import SILENT, Progress
from stepline.tasks.record import record
from stepline.tasks.setup import SetupRequest

FILE = "campaign.jsonl"
DIAGNOSIS = "diagnosis.json"
"""Beside a recording: the sealed answer."""
SURE = 0.25
"""Cost from which one pair of measurements settles it; below, two more are taken in turn (A B B A)."""


def run_campaign(request: CampaignRequest, progress: Progress = SILENT) -> list[str]:
    """Run what the folder does not hold yet, one wave after another; names of the cases run.

    Raises:
        UsageError: the folder holds a campaign of another seed or plan.
    """
    request.folder.mkdir(parents=True, exist_ok=True)
    file = request.folder / FILE
    plan = digest(msgspec.json.encode(request.plan))
    head = {"seed": request.seed, "plan_sha256": plan, "engine": request.plan.engine}
    head |= {"version": request.plan.version, "gpu": request.plan.gpu, **code()}
    held = entries(file)
    if not held:
        append(file, "campaign", "", head, time.time())
    elif (held[0].body.get("seed"), held[0].body.get("plan_sha256")) != (request.seed, plan):
        raise UsageError(f"{request.folder} holds a campaign of another seed or plan; give another folder")
    over = {entry.case for entry in held if entry.kind in ("truth", "failed")}
    numbers = request.only or range(request.cases)
    drawn = [draw_case(request.plan, request.seed, number) for number in numbers]
    pending = [case for case in drawn if case.name not in over]
    for at in range(0, len(pending), request.wave):
        _wave(request, pending[at : at + request.wave], progress)
    return [case.name for case in pending]


def _wave(request: CampaignRequest, cases: Sequence[Drawn], progress: Progress) -> None:
    file = request.folder / FILE
    with tempfile.TemporaryDirectory(prefix="stepline-campaign-") as scratch:
        stand = Stand(request.plan, Path(scratch).resolve(), port=request.port, ready_s=request.ready_s)
        try:
            began = time.monotonic()
            for case in cases:
                drawn = {name: list(map(str, getattr(case, name))) for name in ("context", "changes")}
                append(file, "drawn", case.name, drawn, time.time())
                progress.tell(f"{case.name}: {case}")
            failed = stand.start({case.name: case.server for case in cases})
            for name, why in failed.items():
                append(file, "failed", name, {"why": why, "log": _tail(stand.log(name))}, time.time())
                progress.tell(f"{name}: {why}")
            progress.tell(f"started in {time.monotonic() - began:.0f} s")
            alive = [case for case in cases if case.name not in failed]
            sealed = [case for case in alive if _answer(request, case, stand, progress)]
            twins = {f"twin-{of_it[0].name}": (twin, of_it) for twin, of_it in _by_twin(sealed)}
            failed = stand.start({name: twin for name, (twin, _) in twins.items()})
            for name, (_, of_it) in twins.items():
                if name in failed:
                    for case in of_it:
                        append(file, "failed", case.name, {"why": f"its twin: {failed[name]}"}, time.time())
                else:
                    _truths(request, name, of_it, stand, progress)
        finally:
            stand.stop()


def _answer(request: CampaignRequest, case: Drawn, stand: Stand, progress: Progress) -> bool:
    """Record one case as any user would, and seal what is said of it; False where it cannot be recorded."""
    file, folder, server = request.folder / FILE, request.folder / case.name, case.server
    began = time.monotonic()
    live = LiveRequest(
        budget_s=request.budget_s,
        concurrency=server.concurrency,
        input_tokens=server.input_tokens,
        output_tokens=server.output_tokens,
        shared_prefix_tokens=server.shared_prefix_tokens,
        temperature=server.temperature,
        sampling=server.sampling,
        log=stand.log(case.name),
        load=True,
    )
    try:
        _quiet(stand)
        with stand.surroundings(case.name, server):
            record(stand.url(case.name), folder, live, progress)
        said = diagnose(folder, SetupRequest(gpu=request.plan.gpu), progress)
    except SteplineError as error:
        append(
            file, "failed", case.name, {"why": str(error), "log": _tail(stand.log(case.name))}, time.time()
        )
        progress.tell(f"{case.name}: {error}")
        stand.stop([case.name])
        return False
    content = msgspec.json.format(msgspec.json.encode(said), indent=1)
    (folder / DIAGNOSIS).write_bytes(content)
    body: dict[str, Any] = {
        "diagnosis_sha256": digest(content),
        **code(),
        "verdict": said.verdict,
        "findings": _findings(said),
        "seconds": round(time.monotonic() - began, 1),
    }
    append(file, "answer", case.name, body, time.time())
    progress.tell(f"{case.name}: sealed: {said.verdict}")
    return True


def _findings(said: Diagnosis) -> list[dict[str, Any]]:
    return [
        {
            "code": finding.code,
            "status": finding.status,
            "headline": finding.headline,
            "try": [msgspec.to_builtins(change) for change in finding.tries],
            "gain": None if finding.gain is None else msgspec.to_builtins(finding.gain),
        }
        for finding in said.findings[:3]
    ]


def _by_twin(cases: Sequence[Drawn]) -> Iterator[tuple[Server, list[Drawn]]]:
    """Cases whose twins are started alike, whatever their load."""
    groups: dict[str, list[Drawn]] = {}
    for case in cases:
        key = f"{case.twin.model} {case.twin.flags} {sorted(case.twin.environment.items())}"
        groups.setdefault(key, []).append(case)
    for group in groups.values():
        yield group[0].twin, group


def _truths(
    request: CampaignRequest, name: str, cases: Sequence[Drawn], stand: Stand, progress: Progress
) -> None:
    """Measure each case beside its twin, which runs under `name`, at the heaviest level of its load."""
    file = request.folder / FILE
    first = _rate(request, stand, name, cases[0].twin)
    for case in cases:
        a, b = [_rate(request, stand, name, case.twin)], [_rate(request, stand, case.name, case.server)]
        if _cost(a, b) < SURE:
            b.append(_rate(request, stand, case.name, case.server))
            a.append(_rate(request, stand, name, case.twin))
        drift = abs(a[0] / first - 1) if case.twin == cases[0].twin and first else 0.0
        cost = _cost(a, b)
        pairs = [_cost([x], [y]) for x in a for y in b]
        body = {
            "context": [msgspec.to_builtins(change) for change in case.context],
            "changes": [msgspec.to_builtins(change) for change in case.changes],
            "twin_tok_s": a,
            "changed_tok_s": b,
            "cost": round(cost, 4),
            "low": round(min(pairs) - drift, 4),
            "high": round(max(pairs) + drift, 4),
        }
        append(file, "truth", case.name, body, time.time())
        progress.tell(f"{case.name}: costs {cost:.0%} ({body['low']:.0%} to {body['high']:.0%})")
    stand.stop([name, *(case.name for case in cases)])


def _cost(twin: Sequence[float], changed: Sequence[float]) -> float:
    """Share of the twin's rate that the change takes; below zero where it brings some."""
    return 1 - statistics.fmean(changed) / statistics.fmean(twin) if statistics.fmean(twin) else 0.0


def _quiet(stand: Stand) -> None:
    """Wait until no server of the stand answers: dropped streams run to their end, on the GPU that all share."""
    for url in stand.urls:
        address = parse(url)
        wait_idle(look_at(address), Http(address))


def _rate(request: CampaignRequest, stand: Stand, name: str, server: Server) -> float:
    """Steady output tokens a second at the heaviest level; 0 where nothing came."""
    streams = max(server.concurrency)
    plan = LevelPlan(
        concurrency=streams,
        input_tokens=server.input_tokens,
        output_tokens=server.output_tokens,
        together_tokens=min(40, server.output_tokens),
        seconds=request.level_s,
        shared_prefix_tokens=server.shared_prefix_tokens,
        temperature=server.temperature,
        sampling=server.sampling,
    )
    _quiet(stand)
    with tempfile.TemporaryDirectory() as scratch, stand.surroundings(name, server):
        session = Session(parse(stand.url(name), ()), Path(scratch) / "level", log=stand.log(name))
        with session:
            session.wait_idle()
            result = session.level(plan, "what is true")
    return result.level.tok_s or 0.0


def _tail(log: Path) -> str:
    """The end of a log, for what does not start; paths of this machine are not in it."""
    text = log.read_text(errors="replace") if log.is_file() else ""
    return text[-400:].replace(str(log.parent), "")


def code() -> dict[str, str | None]:
    """What diagnoses: the hash of its source files, and the commit where this is a checkout."""
    root = Path(__file__).parents[1]
    files = sorted(path for path in root.rglob("*") if path.is_file() and path.suffix != ".pyc")
    lines = [f"{digest(path.read_bytes())}  {path.relative_to(root)}" for path in files]
    try:
        found = subprocess.run(  # noqa: S603
            ["git", "-C", str(root), "rev-parse", "HEAD"],  # noqa: S607
            capture_output=True,
            text=True,
            check=True,
        )
        commit: str | None = found.stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        commit = None
    return {"code_sha256": digest("\n".join(lines).encode()), "commit": commit}


def verify_campaign(folder: Path) -> list[str]:
    """What speaks against a campaign's seals, a line each; empty where they hold.

    Raises:
        UsageError: there is no campaign.
    """
    file = folder / FILE
    if not file.is_file():
        raise UsageError(f"{folder}: no {FILE}; give the folder of a campaign")
    said = {path.parent.name: path.read_bytes() for path in folder.glob(f"*/{DIAGNOSIS}")}
    return [f"line {doubt.line}: {doubt.text}" for doubt in verify(file, said)]

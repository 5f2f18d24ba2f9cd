"""`stepline score DIR`: how often the diagnosis is right over labelled cases."""

import argparse
import re
import sys
from pathlib import Path

import msgspec

from stepline import units
from stepline.cli.live_arguments import defaults
from stepline.cli.progress import Progress
from stepline.cli.setup_arguments import setup_request
from stepline.errors import SteplineError, UnknownFact, UsageError
from stepline.facts.hardware import find_gpu
from stepline.findings.diagnose import diagnose
from stepline.score.case import Case, find_cases, load_case
from stepline.score.scores import Answer, Scores, Share, score
from stepline.tasks.picture import picture_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `score`."""
    parser.add_argument(
        "folder", help="a folder of cases, each with a case.toml, or of recordings with a truth.toml"
    )
    parser.add_argument(
        "--only", default="", metavar="NN,NN", help="cases whose folder begins with one of these"
    )
    parser.add_argument(
        "--json",
        nargs="?",
        const="-",
        metavar="FILE",
        help="write scores and answers as JSON; - or nothing for stdout",
    )


def run(args: argparse.Namespace) -> int:
    """Diagnose every case and print the table.

    Raises:
        UsageError: when there is no case.
    """
    wanted = tuple(word for word in args.only.split(",") if word)
    folders = [path for path in find_cases(Path(args.folder)) if not wanted or path.name.startswith(wanted)]
    if not folders:
        raise UsageError(
            f"{args.folder}: neither case.toml nor truth.toml below it; give a folder of labelled cases"
        )
    answers = [answer_case(load_case(folder)) for folder in folders]
    scores = score(answers)
    if args.json:
        document = {"scores": msgspec.to_builtins(scores), "answers": msgspec.to_builtins(answers)}
        text = msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"
        if args.json == "-":
            sys.stdout.write(text)
            return 0
        Path(args.json).write_text(text, "utf-8")
    sys.stdout.write(_table(answers, scores))
    return 0


def answer_case(case: Case) -> Answer:
    """The diagnosis of one case from its files and what its label says of the system, never of the cause."""
    findings: tuple[str, ...] = ()
    confirmed: frozenset[str] = frozenset()
    arms, error = False, None
    try:
        setup = defaults(
            quiet=True,
            model=case.model,
            gpu=_gpu(case.hardware),
            tp=case.tp,
            context_length=case.context_length,
        )
        picture = picture_of(
            [str(case.folder / name) for name in case.files],
            setup_request(setup),
            Progress(quiet=setup.quiet),
        )
        arms = bool(picture.run.levers)
        told = diagnose(picture)
        findings = tuple(finding.name for finding in told.findings)
        confirmed = frozenset(finding.name for finding in told.findings if finding.status == "confirmed")
    except SteplineError as problem:
        error = str(problem)
    return Answer(
        case=case.name,
        expected=case.expected,
        forbidden=case.forbidden,
        arms=arms,
        findings=findings,
        confirmed=confirmed,
        error=error,
    )


def _gpu(hardware: str | None) -> str | None:
    """The GPU in a free description such as '8x H200 (TP4 used)'; None when no known one is named."""
    words = re.split(r"[(,;/]", hardware or "")[0]
    name = re.sub(r"^\s*\d+\s*(?:x|×)\s*", "", words).strip()
    while name:
        try:
            find_gpu(name)
        except UnknownFact:
            name = name.rpartition(" ")[0]
        else:
            return name
    return None


def _table(answers: list[Answer], scores: Scores) -> str:
    lines = [f"{'case':36} {'expected':26} {'said first':26} "]
    for answer in answers:
        said = answer.findings[0] if answer.findings else "(not read)" if answer.error else "(nothing)"
        mark = "ok" if answer.top_1 else "top 3" if answer.top_3 else "MISS"
        sure = " (confirmed)" if said in answer.confirmed else ""
        lines.append(
            f"{answer.case[:36]:36} {(answer.expected or 'nothing confirmed')[:26]:26} {said + sure:38} {mark}"
        )
    lines += [
        "",
        f"top-1 {_share(scores.top_1)}   top-3 {_share(scores.top_3)}   answered {_share(scores.answered)}",
        f"cases of A/B arms, top-1 {_share(scores.top_1_arms)}",
        f"silence asked for and broken {_share(scores.healthy_called_sick)}",
        f"forbidden findings: {'; '.join(scores.forbidden) or 'none'}",
        "",
        f"{'cause':28} {'precision':>24} {'recall':>24}",
    ]
    lines += [f"{row.name:28} {_share(row.precision):>24} {_share(row.recall):>24}" for row in scores.classes]
    return "\n".join(lines) + "\n"


def _share(share: Share) -> str:
    if share.value is None or share.interval is None:
        return "–"
    low, high = share.interval
    return f"{share.hits}/{share.total} = {units.fmt(share.value, 2)} [{low:.2f}, {high:.2f}]"

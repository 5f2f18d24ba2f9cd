"""`stepline score DIR`: how often the diagnosis is right over labelled cases."""

import argparse
import sys
from pathlib import Path

import msgspec

from stepline import units
from stepline.cli.files import write_text
from stepline.score.scores import Answer, Scores, Share
from stepline.tasks.score import score_folder


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `score`."""
    parser.add_argument(
        "folder", help="a folder of cases, each with a case.toml, or of recordings with a truth.toml"
    )
    parser.add_argument(
        "--only", default="", metavar="NN,NN", help="cases whose folder begins with one of these"
    )
    parser.add_argument(
        "--without-rules",
        action="store_true",
        help="ask the accounting alone: a cause is found where the general finding of its letter names its part",
    )
    parser.add_argument(
        "--json",
        nargs="?",
        const="-",
        metavar="FILE",
        help="write scores and answers as JSON; - or nothing for stdout",
    )


def run(args: argparse.Namespace) -> int:
    """Diagnose every case and print the table."""
    only = tuple(word for word in args.only.split(",") if word)
    scored = score_folder(Path(args.folder), only, without_rules=args.without_rules)
    if args.json:
        text = msgspec.json.format(msgspec.json.encode(scored), indent=2).decode() + "\n"
        if args.json == "-":
            sys.stdout.write(text)
            return 0
        write_text(args.json, text)
    sys.stdout.write(_table(scored.answers, scored.scores))
    return 0


def _table(answers: tuple[Answer, ...], scores: Scores) -> str:
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

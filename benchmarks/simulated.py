"""How often the diagnosis is right over simulated captures: top-1, top-3, healthy called sick, predicted gains.

Run: python benchmarks/simulated.py [--seed 0] [--repeats 5] [--healthy 4] [--jobs 2] [--json FILE] [--keep DIR]

Nothing is tuned on a seed here: report a fresh one beside the one that was developed on. Simulated figures are
never pooled with real ones. Classes without a rule yet are counted apart, since no answer can be right there.
"""

import argparse
import json
import os
import platform
import tempfile
import time
import tomllib
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from stepline.errors import SteplineError
from stepline.findings.registry import RULES, find_rule
from stepline.lab.sim.captures.capture import write_capture
from stepline.lab.sim.captures.cases import Case, cases
from stepline.score.scores import Answer, Scores, Share, score
from stepline.tasks.diagnose import diagnose
from stepline.tasks.setup import SetupRequest

EVIDENCE: dict[str, tuple[str, ...]] = {
    "all": ("server.log", "server_info.json", "metrics.txt", "sweep.json", "gpm.csv", "trace"),
    "no trace": ("server.log", "server_info.json", "metrics.txt", "sweep.json", "gpm.csv"),
    "log only": ("server.log",),
    "metrics only": ("metrics.txt",),
    "bench only": ("sweep.json",),
    "trace only": ("trace",),
}
"""What is read; the model's config always is."""


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """One case answered from one choice of evidence."""

    answer: Answer
    evidence: str
    also_true: frozenset[str] = frozenset()
    """Causes that hold besides the expected one and cost less: confirming them is not wrong."""
    gain_true: float | None
    """Rate of the healthy twin over the rate with the fault; None unless the right cause was named first."""
    gain_said: tuple[float, float, float] | None
    """Low, middle, high of the same, as predicted."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--repeats", type=int, default=5, help="cases of each fault and strength (5)")
    parser.add_argument(
        "--healthy", type=int, default=4, help="as many times more of those without a fault (4)"
    )
    parser.add_argument("--pairs", type=int, default=0, help="cases of each pair of faults and strength (0)")
    parser.add_argument("--only", nargs="+", metavar="FAULT", help="only these faults")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the captures there")
    args = parser.parse_args()
    drawn = [
        case
        for case in cases(args.seed, repeats=args.repeats, healthy=args.healthy, pairs=args.pairs)
        if not args.only or case.fault in args.only
    ]
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as scratch, ProcessPoolExecutor(args.jobs) as pool:
        out = args.keep or Path(scratch)
        out.mkdir(parents=True, exist_ok=True)
        both = [each for some in pool.map(partial(tell, out=out), drawn, chunksize=4) for each in some]
    told = [each for each in both if "+" not in each.answer.case]
    took_s = time.perf_counter() - start
    print(
        f"seed {args.seed}, {len(drawn)} cases, {args.jobs} at a time on {platform.machine()}: {took_s:.0f} s"
    )
    ruled = {rule.codename for rule in RULES}
    result: dict[str, Any] = {"seed": args.seed, "cases": len(drawn), "seconds": round(took_s)}
    for evidence in EVIDENCE:
        some = [each for each in told if each.evidence == evidence]
        answers = [each.answer for each in some if each.answer.expected in {None, *ruled}]
        scores = score(answers)
        result[evidence] = msgspec.to_builtins(scores)
        result[evidence]["with_fault"] = msgspec.to_builtins(_with_fault(some))
        print(f"\n{evidence}\n{_summary(scores, some)}")
        if evidence == "all":
            print(_classes(scores) + _gains(some))
            none = [each.answer for each in some if each.answer.expected not in {None, *ruled}]
            silent = sum(not each.confirmed for each in none)
            print(f"causes without a rule: {len(none)} cases, nothing confirmed in {silent}")
            result["misses"] = [
                {"case": a.case, "expected": a.expected, "said": a.findings, "confirmed": sorted(a.confirmed)}
                for a in (*answers, *none)
                if not a.top_1
            ]
    pairs = [each.answer for each in both if "+" in each.answer.case and each.evidence == "all"]
    if pairs:
        print(_pairs(pairs))
        result["pairs"] = [
            {"case": a.case, "expected": a.expected, "said": a.findings, "confirmed": sorted(a.confirmed)}
            for a in pairs
        ]
    if args.json:
        args.json.write_text(json.dumps(result, indent=1) + "\n", "utf-8")


def tell(case: Case, out: Path) -> list[Told]:
    """Capture one case and answer it from each choice of evidence."""
    truth = write_capture(case, out)
    folder = out / case.name
    label = tomllib.loads((folder / "case.toml").read_text("utf-8"))
    expected = None if truth.expected == "" else str(label["expected"]["finding"])
    files = [str(folder / name) for name in label["data"]["files"]]
    also = frozenset(find_rule(code).codename for code in truth.also_true)
    true = truth.twin_tok_s / truth.tok_s if truth.tok_s else None
    told = []
    for evidence, kinds in EVIDENCE.items():
        paths = [path for path in files if any(kind in path for kind in (*kinds, "config.json"))]
        answer = _answer(case, expected, paths, evidence, true)
        told.append(msgspec.structs.replace(answer, also_true=also))
    return told


def _answer(
    case: Case, expected: str | None, paths: Sequence[str], evidence: str, gain_true: float | None
) -> Told:
    findings: tuple[str, ...] = ()
    confirmed: frozenset[str] = frozenset()
    error, said = None, None
    try:
        known = SetupRequest(gpu=case.gpu, tp=case.tp)
        found = diagnose(paths, known).findings
        findings = tuple(each.name for each in found)
        confirmed = frozenset(each.name for each in found if each.status == "confirmed")
        gain, cost = (found[0].gain, found[0].recoverable_tok_s) if found else (None, None)
        if gain is not None and cost is not None and gain.tok_s > cost and findings[0] == expected:
            now = gain.tok_s - cost
            said = (gain.low / now, gain.tok_s / now, gain.high / now)
    except SteplineError as problem:
        error = str(problem)
    answer = Answer(
        case=case.name,
        expected=expected,
        accepts=frozenset() if expected is None else frozenset({expected}),
        forbidden=frozenset(),
        arms=False,
        findings=findings,
        confirmed=confirmed,
        error=error,
    )
    return Told(answer=answer, evidence=evidence, gain_true=gain_true if said else None, gain_said=said)


def _pairs(answers: Sequence[Answer]) -> str:
    """Pairs of which each alone is worth a finding: both, or one, among the first three; the first right."""
    two = [(a.expected.split("+"), a) for a in answers if a.expected and "+" in a.expected]
    one = [a for a in answers if a.expected and "+" not in a.expected]
    all_of = sum(set(names) <= set(a.findings[:3]) for names, a in two)
    some = sum(bool(set(names) & set(a.findings[:3])) for names, a in two)
    first = sum(a.findings[:1] in [(name,) for name in names] for names, a in two)
    wrong = sum(bool(a.confirmed - set((a.expected or "").split("+"))) for a in answers)
    return (
        f"\npairs of faults: {len(answers)}, in {len(two)} each costs a tenth or more\n"
        f"  both among the first three {_share(Share(all_of, len(two)))}\n"
        f"  one of them among those {_share(Share(some, len(two)))}\n"
        f"  first is one of them {_share(Share(first, len(two)))}\n"
        f"  pairs of which one costs: named first {_share(Share(sum(a.top_1 for a in one), len(one)))}\n"
        f"  something else confirmed {_share(Share(wrong, len(answers)))}"
    )


def _with_fault(told: Sequence[Told]) -> Scores:
    """The same without the cases in which silence is right, which are as many as one asks for."""
    return score([each.answer for each in told if each.answer.expected is not None])


def _summary(scores: Scores, told: Sequence[Told]) -> str:
    wrong = [each for each in told if each.answer.confirmed - {each.answer.expected} - each.also_true]
    faults = _with_fault(told)
    return (
        f"  top-1 {_share(scores.top_1)}   top-3 {_share(scores.top_3)}   answered {_share(scores.answered)}\n"
        f"  of those with a fault that costs: top-1 {_share(faults.top_1)}   top-3 {_share(faults.top_3)}   "
        f"answered {_share(faults.answered)}\n"
        f"  healthy called sick {_share(scores.healthy_called_sick)}   "
        f"wrongly confirmed {_share(Share(len(wrong), len(told)))}"
    )


def _classes(scores: Scores) -> str:
    rows = [f"  {'cause':28} {'precision':>26} {'recall':>26}\n"]
    rows += [
        f"  {row.name:28} {_share(row.precision):>26} {_share(row.recall):>26}\n" for row in scores.classes
    ]
    return "".join(rows)


def _gains(told: Sequence[Told]) -> str:
    pairs = [(each.gain_true, each.gain_said) for each in told if each.gain_true and each.gain_said]
    if not pairs:
        return ""
    inside = sum(low <= true <= high for true, (low, _, high) in pairs)
    widths = sorted((high - low) / (2 * middle) for _, (low, middle, high) in pairs)
    misses = sorted(abs(middle / true - 1) for true, (_, middle, _) in pairs)
    half = len(pairs) // 2
    return (
        f"  predicted gain holds the true one {_share(Share(inside, len(pairs)))}, median half width "
        f"{100 * widths[half]:.1f} %, median miss {100 * misses[half]:.0f} %\n"
    )


def _share(share: Share) -> str:
    if share.value is None or share.interval is None:
        return "–"
    low, high = share.interval
    return f"{share.hits}/{share.total} = {share.value:.2f} [{low:.2f}, {high:.2f}]"


if __name__ == "__main__":
    main()

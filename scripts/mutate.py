"""Breaks each threshold and each decision of rules, model and plan, and shows which breaks no test notices.

Run: python scripts/mutate.py [CODE or MODULE ...] [--thresholds] [--since REF] [--sample N]. A CODE stands for the rule
and the signs that it asks, a MODULE for a path below src/stepline such as model/measure. With --since only modules
that changed since that commit.
Each mutant moves one threshold by a third, up or down, turns one comparison round, one `and` into `or` (and back), or
one status into the other. All tests are imported once; each mutant is a fork of that process, which runs the tests that
call the broken function: first those of tests/rules and tests/unit, then, where none of them fails, those of
tests/golden. A survivor is a decision that nobody tests: kill it with a test, or list it with the reason in
tests/mutants.toml. Returns 1 when a threshold, or a decision of a rule or a sign, survives that is not listed.
"""

import argparse
import gc
import itertools
import os
import pickle
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import pytest
from mutants import SRC, Mutant, apply, modules, mutants, near_tests, of_rule

ROOT = Path(__file__).parents[1]
QUICK = ("tests/rules", "tests/unit/model", "tests/unit/plan", "tests/unit/findings")
LAST = (
    "tests/golden/test_h200_faults.py",
    "tests/golden/test_h200_captures.py",
    "tests/golden/test_h200_live.py",
    "tests/golden/test_trace_captures.py",
)
CAP = 150
"""Mutants that a run with --since tries at most: some minutes on two cores."""
STRICT = (
    "stepline/findings/rules/",
    "stepline/findings/roofline_excess.py",
    "stepline/model/signs/",
    "stepline/model/measure/idle_engine.py",
    "stepline/model/measure/preemption.py",
)
"""Where an untested decision is a failure, as an untested threshold is everywhere; elsewhere it is told only."""
BROKEN = 97
"""Exit status of a fork that failed outside of any test."""
HANGS_S = 120
"""CPU seconds; a fork that takes more is in an endless loop, which its tests would notice."""


class Verdict(NamedTuple):
    """What became of a mutant: the stage whose tests noticed (0, 1), or None."""

    mutant: Mutant
    stage: int | None


class Mutator:
    """Pytest's plugin: in place of running the tests once, runs those that matter once a mutant."""

    def __init__(self, tried: Sequence[Mutant], stages: Sequence[Sequence[str]], jobs: int) -> None:
        self.tried = tried
        self.stages = stages
        self.jobs = jobs
        self.verdicts: list[Verdict] = []

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Watch all tests once, then fork for each mutant."""
        items = session.items
        started = time.monotonic()
        calls = _in_fork(lambda: _watched(session, items))
        print(f"{len(items)} tests watched in {time.monotonic() - started:.0f} s", flush=True)
        gc.collect()
        gc.freeze()
        waiting, running = list(reversed(self.tried)), {}
        while waiting or running:
            while waiting and len(running) < self.jobs:
                mutant = waiting.pop()
                running[_fork(partial(self._judge, session, mutant, calls), HANGS_S)] = mutant
            pid, status = os.wait()
            code = os.waitstatus_to_exitcode(status)
            if code == BROKEN:
                sys.exit(f"cannot try {running[pid].key}")
            verdict = Verdict(running.pop(pid), None if code == len(self.stages) else max(0, code))
            self.verdicts.append(verdict)
            if verdict.stage is None:
                print(f"survives: {verdict.mutant.key}", flush=True)
        return True

    def _judge(self, session: pytest.Session, mutant: Mutant, calls: dict[str, Any]) -> int:
        """The first stage with a test that fails, or their number."""
        apply(mutant)
        for stage, paths in enumerate(self.stages):
            chosen = [
                item
                for item in session.items
                if item.nodeid.startswith(tuple(paths))
                and mutant.functions
                & (calls["item"].get(item.nodeid, set()) | calls["file"].get(_file(item), set()))
            ]
            near = near_tests(mutant.path)
            chosen.sort(
                key=lambda item: (not item.nodeid.startswith(near), calls["cost"].get(_file(item), 0.0))
            )
            if not _pass(session, chosen):
                return stage
        return len(self.stages)


def _pass(session: pytest.Session, items: Sequence[pytest.Item]) -> bool:
    for item, following in itertools.zip_longest(items, items[1:]):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.testsfailed:
            return False
    return True


def _file(item: pytest.Item) -> str:
    return item.nodeid.split("::")[0]


def _watched(session: pytest.Session, items: Sequence[pytest.Item]) -> dict[str, Any]:
    """Which functions each test calls; those of a fixture's making count for its whole file."""
    found: dict[str, Any] = {"item": defaultdict(set), "file": defaultdict(set), "cost": defaultdict(float)}
    places: dict[Any, tuple[str, str] | None] = {}
    called: set[Any] = set()

    def watch(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            called.add(frame.f_code)

    def keep(into: set[tuple[str, str]]) -> None:
        for code in called:
            if code not in places:
                inside = code.co_filename.startswith(str(SRC))
                path = code.co_filename.removeprefix(f"{SRC}/")
                places[code] = (path, code.co_qualname.split(".<locals>")[0]) if inside else None
            if places[code] is not None:
                into.add(places[code])
        called.clear()

    class Watch:
        @pytest.hookimpl(hookwrapper=True)
        def pytest_runtest_setup(self, item: pytest.Item) -> Iterator[None]:
            sys.setprofile(watch)
            yield
            sys.setprofile(None)
            keep(found["file"][_file(item)])

        @pytest.hookimpl(hookwrapper=True)
        def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
            sys.setprofile(watch)
            yield
            sys.setprofile(None)
            keep(found["item"][item.nodeid])

        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            found["cost"][report.nodeid.split("::")[0]] += report.duration

    session.config.pluginmanager.register(Watch())
    if not _pass(session, items):
        raise SystemExit(1)
    return found


def _in_fork(work: Any) -> Any:
    """What a function returns in a fork, so that nothing it warms is warm here."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "found"
        os.waitpid(_fork(lambda: min(0, place.write_bytes(pickle.dumps(work())))), 0)
        if not place.exists():
            sys.exit("a test fails without a mutant: run them first")
        return pickle.loads(place.read_bytes())  # noqa: S301  # written by this process's own fork


def _fork(work: Callable[[], int], limit_s: int = 0) -> int:
    """Start a silent fork that exits with what `work` returns; BROKEN when it fails, by a signal when it hangs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid:
        return pid
    if limit_s:
        resource.setrlimit(resource.RLIMIT_CPU, (limit_s, limit_s))
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    try:
        code = work()
    except BaseException:  # a fork never goes on as its parent would
        code = BROKEN
    os._exit(code)


def _changed_since(ref: str) -> set[str]:
    """Modules that differ from a commit, those not yet committed too."""
    git = shutil.which("git") or "git"
    listed = subprocess.run(  # noqa: S603  # git, over this checkout
        [git, "diff", "--name-only", ref, "--", "src"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return {path.removeprefix("src/") for path in listed.stdout.split()}


def _chosen(args: argparse.Namespace) -> list[Mutant]:
    """The mutants that a command line asks for."""
    names = set(modules())
    if args.names:
        named = [
            of_rule(name.upper())
            if name[1:].isdigit()
            else {m for m in names if m.startswith(f"stepline/{name}")}
            for name in args.names
        ]
        names &= set().union(*named)
    if args.since is not None:
        names &= _changed_since(args.since)
    found = [mutant for name in sorted(names) for mutant in mutants(name)]
    if args.thresholds:
        found = [mutant for mutant in found if mutant.threshold is not None]
    cap = args.sample or (CAP if args.since is not None else None)
    print(f"{len(found)} mutants in {len(names)} modules", end="")
    if cap is not None and len(found) > cap:
        found = sorted(random.Random(args.seed).sample(found, cap))  # noqa: S311  # a sample to look at
        print(f", of which {cap} are tried (seed {args.seed})", end="")
    print(flush=True)
    return found


def _report(verdicts: Sequence[Verdict], listed: dict[str, str], stages: int) -> int:
    by_module: dict[str, list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        by_module[verdict.mutant.path].append(verdict)
    unlisted = 0
    for path, judged in sorted(by_module.items()):
        missed = [verdict.mutant for verdict in judged if verdict.stage is None]
        print(f"{path.removeprefix('stepline/')}: {len(judged) - len(missed)} of {len(judged)} noticed")
        for mutant in sorted(missed, key=lambda one: one.line):
            reason = listed.get(mutant.key)
            strict = mutant.threshold is not None or path.startswith(STRICT)
            unlisted += strict and reason is None
            told = f" (listed: {reason})" if reason else "" if strict else " (told only)"
            print(f"    line {mutant.line}: {mutant.what}{told}")
    for kind, wanted in (("thresholds", True), ("decisions", False)):
        of_kind = [verdict for verdict in verdicts if (verdict.mutant.threshold is not None) is wanted]
        at = [sum(verdict.stage == stage for verdict in of_kind) for stage in range(stages)]
        if of_kind:
            share = 100 * sum(at) / len(of_kind)
            print(f"{kind}: {sum(at)} of {len(of_kind)} noticed ({share:.1f} %), by stage {at}")
    return unlisted


def main() -> int:
    """Try the mutants asked for; 1 when one survives that is not listed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="CODE|MODULE")
    parser.add_argument("--thresholds", action="store_true", help="thresholds only")
    parser.add_argument("--since", metavar="REF", help="only modules that changed since this commit")
    parser.add_argument("--sample", type=int, metavar="N", help="try so many, chosen by the seed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--first", nargs="+", default=QUICK, metavar="PATH", help="tests of the first stage")
    parser.add_argument("--then", nargs="*", default=LAST, metavar="PATH", help="tests of the second")
    args = parser.parse_args()
    os.chdir(ROOT)
    tried = _chosen(args)
    if not tried:
        return 0
    stages = [args.first, args.then] if args.then else [args.first]
    mutator = Mutator(tried, stages, args.jobs)
    options = ["-s", "-qq", "--no-summary", "-p", "no:cacheprovider", "-m", "not timed"]
    pytest.main([*options, *dict.fromkeys(path for paths in stages for path in paths)], plugins=[mutator])
    listing = tomllib.loads((ROOT / "tests" / "mutants.toml").read_text())
    listed = {f"{module}: {what}": why for module, group in listing.items() for what, why in group.items()}
    return 1 if _report(mutator.verdicts, listed, len(stages)) else 0


if __name__ == "__main__":
    sys.exit(main())

"""Breaks each rule, one decision at a time, and shows which breaks no test notices.

Run: python scripts/mutate.py [--since REF] [CODE ...]. With --since only rules (and models of theirs) that changed
since that commit. Works on a copy of the checkout; a survivor is a decision that nobody tests.
Decisions of models that only some rules ask count as theirs.
Each mutant turns one comparison round, one `and` into `or` (and back), or one status into the other.
"""

import argparse
import ast
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
RULES = Path("src/stepline/findings/rules")
MODELS = {
    "src/stepline/findings/roofline_excess.py": ("H304", "K401", "K403"),
    "src/stepline/model/signs/sm_clocks.py": ("P601",),
    "src/stepline/model/signs/communication.py": ("C501", "C502", "S204"),
    "src/stepline/model/signs/context_law.py": ("K401", "K402", "K403"),
    "src/stepline/model/signs/per_request_excess.py": ("K401", "K402", "K403", "K404"),
    "src/stepline/model/signs/front_end.py": ("H304",),
    "src/stepline/model/signs/host.py": ("H301", "H302", "H303", "S204", "S205"),
    "src/stepline/model/measure/idle_engine.py": ("H306",),
    "src/stepline/model/signs/kernel_paths.py": ("K402", "K403", "K404", "K405", "K407"),
    "src/stepline/model/signs/batch_limit.py": ("K401", "L106", "S201", "S202", "S203", "S204", "S206"),
    "src/stepline/model/signs/recompute.py": ("H303", "S203", "S204"),
    "src/stepline/model/measure/preemption.py": ("S202", "S203"),
    "src/stepline/model/signs/speculation.py": ("S205",),
    "src/stepline/model/signs/stretched_prompts.py": ("S204",),
    "src/stepline/model/signs/trace_integrity.py": ("L105",),
}
"""Models, and a question that rules share, by the rules whose tests must notice."""
INVERSE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
STATUS = {"confirmed": "suspected", "suspected": "confirmed"}


def mutants(source: str) -> Iterator[tuple[int, str]]:
    """(line, mutated source) for each decision of a rule."""
    count = sum(1 for _ in ast.walk(ast.parse(source)))
    for index in range(count):
        tree = ast.parse(source)
        node = list(ast.walk(tree))[index]
        if isinstance(node, ast.Compare) and type(node.ops[0]) in INVERSE:
            node.ops[0] = INVERSE[type(node.ops[0])]()
        elif isinstance(node, ast.BoolOp):
            node.op = ast.And() if isinstance(node.op, ast.Or) else ast.Or()
        elif isinstance(node, ast.Constant) and node.value in STATUS:
            node.value = STATUS[str(node.value)]
        else:
            continue
        yield node.lineno, ast.unparse(tree)


def changed_since(ref: str) -> set[str]:
    """Paths that differ from a commit, those not yet committed too."""
    git = shutil.which("git") or "git"
    listed = subprocess.run(  # noqa: S603  # git, over this checkout
        [git, "diff", "--name-only", ref, "--", "src"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(listed.stdout.split())


def main() -> int:
    """Mutate the rules named (all without names) and return 1 when one survives."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("codes", nargs="*", metavar="CODE")
    parser.add_argument("--since", metavar="REF", help="only what changed since this commit")
    args = parser.parse_args()
    wanted = {code.upper() for code in args.codes}
    changed = None if args.since is None else changed_since(args.since)
    survivors = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "stepline"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".git", ".venv", ".*_cache", ".hypothesis"))
        rules = [(path, (path.read_text()[3:7],)) for path in sorted((copy / RULES).glob("[a-z]*.py"))]
        for path, codes in [*rules, *((copy / model, codes) for model, codes in MODELS.items())]:
            source = path.read_text()
            if wanted and not wanted & set(codes):
                continue
            if changed is not None and str(path.relative_to(copy)) not in changed:
                continue
            found, missed = 0, []
            for line, mutant in mutants(source):
                path.write_text(mutant)
                tests = [
                    *(f"tests/rules/{code}" for code in codes),
                    "tests/golden/test_h200_faults.py",
                    "tests/golden/test_h200_captures.py",
                ]
                command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
                ran = subprocess.run(  # noqa: S603  # pytest, over a copy of this project
                    command,
                    cwd=copy,
                    capture_output=True,
                    check=False,
                    env={"PYTHONPATH": str(copy / "src"), "PATH": ""},
                )
                if ran.returncode == 0:
                    missed.append(line)
                else:
                    found += 1
            path.write_text(source)
            survivors += len(missed)
            print(
                f"{' '.join(codes)} {path.stem}: {found} of {found + len(missed)} noticed"
                + (f", not lines {missed}" if missed else ""),
                flush=True,
            )
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())

"""Diagnoses labelled cases and counts how often the answer is right."""

import re
from pathlib import Path

import msgspec

from stepline.errors import SteplineError, UnknownFact, UsageError
from stepline.facts.hardware import find_gpu
from stepline.findings.registry import RULES
from stepline.findings.several import diagnose_runs
from stepline.score.case import Case, find_cases, load_case
from stepline.score.scores import Answer, Scores, score
from stepline.tasks.picture import pictures_of, read
from stepline.tasks.setup import SetupRequest


class Scored(msgspec.Struct, frozen=True, kw_only=True):
    """The scores, and the answers that they count."""

    scores: Scores
    answers: tuple[Answer, ...]


def score_folder(folder: Path, only: tuple[str, ...] = (), *, without_rules: bool = False) -> Scored:
    """Diagnose every case below a folder; `only` are beginnings of their folders' names, empty for all.

    With `without_rules` the specific rules are not asked, and the general finding of a cause's letter is right.

    Raises:
        UsageError: when there is no case.
    """
    folders = [path for path in find_cases(folder) if not only or path.name.startswith(only)]
    if not folders:
        raise UsageError(
            f"{folder}: neither case.toml nor truth.toml below it; give a folder of labelled cases"
        )
    answers = tuple(answer_case(load_case(path), without_rules=without_rules) for path in folders)
    return Scored(scores=score(answers), answers=answers)


def answer_case(case: Case, *, without_rules: bool = False) -> Answer:
    """The diagnosis of one case from its files and what its label says of the system, never of the cause."""
    findings: tuple[str, ...] = ()
    confirmed: frozenset[str] = frozenset()
    arms, error = False, None
    try:
        setup = SetupRequest(
            model=case.model, gpu=_gpu(case.hardware), tp=case.tp, context_length=case.context_length
        )
        evidence = read([case.folder / name for name in case.files], setup)
        told = diagnose_runs(pictures_of(evidence, setup), evidence, general_only=without_rules)
        arms = any(run.levers for run in evidence.runs) or bool(told.comparisons)
        decided = [
            cause.name for one in told.comparisons for cause in one.answers if cause.says == "confirmed"
        ]
        findings = tuple(dict.fromkeys((*decided, *(finding.name for finding in told.findings))))
        confirmed = frozenset(
            (*decided, *(finding.name for finding in told.findings if finding.status == "confirmed"))
        )
    except SteplineError as problem:
        error = str(problem)
    general = _general if without_rules else _same
    return Answer(
        case=case.name,
        expected=None if case.expected is None else general(case.expected),
        accepts=frozenset(general(name) for name in case.accepts),
        forbidden=case.forbidden,
        arms=arms,
        findings=findings,
        confirmed=confirmed,
        error=error,
    )


def _same(name: str) -> str:
    return name


def _general(name: str) -> str:
    """The general finding of a cause's letter; the cause itself where its letter has none."""
    letter = next((rule.code[0] for rule in RULES if rule.codename == name), "")
    return next((rule.codename for rule in RULES if rule.general and rule.code[0] == letter), name)


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

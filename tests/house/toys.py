"""A toy rule and a toy engine as a newcomer would add them: whole files, and lines put into files that exist."""

RULE = '''"""H309 toy-overlap-off.

What it means:
    The scheduler does not prepare the next step while the GPU works.

Why it costs:
    The host's part of a step is added to the GPU's.

Evidence needed:
    The engine's own word on its overlap schedule, and a step.

How it decides:
    The setting is off, and the step takes more than its floor.

What would prove it wrong:
    The same load with the overlap on decodes as slowly.

What to try:
    The setting on.

References:
    a toy
"""

from stepline.findings.outcome import (
    CannotTell,
    Clear,
    Fired,
    Observation,
    Outcome,
    Rule,
    SettingChange,
    recovered,
)
from stepline.model.change.estimate import Estimate
from stepline.model.change.gain import gain
from stepline.model.picture.picture import Picture


def check(picture: Picture) -> Outcome:
    """Decide whether the overlap is off."""
    overlap, step = picture.run.server.overlap_schedule, picture.step
    if overlap is None or step is None:
        return CannotTell("whether steps overlap", "curl /server_info")
    if overlap.value:
        return Clear("steps overlap")
    rate = picture.rate_tok_s
    told = None if rate is None else gain(Estimate(3 * rate, 2 * rate, 4 * rate), "the floor")
    return Fired(
        status="confirmed",
        headline="steps do not overlap",
        evidence=(Observation("the setting is off", overlap.origin),),
        recoverable_tok_s=recovered(rate, told),
        gain=told,
    )


def _setting(picture: Picture) -> SettingChange | None:
    return None if picture.load is None else SettingChange(setting="max_running", value=77)


RULE = Rule("H309", "toy-overlap-off", "0.1.0", check, change=_setting)
'''

RULE_TEST = """from stepline.findings.outcome import CannotTell, Clear, Fired
from stepline.plan.change import change_for
from tests.rules.server import Stage, check, diagnosed, level, picture, server

BUSY = Stage(running=8, step_ms=5.1)


def overlapping(value):
    return server([BUSY], levels=[level(8, 1465, 5.1, 49)], overlap_schedule=value)


def test_fires():
    answer = check("H309", overlapping(False))
    assert isinstance(answer, Fired)


def test_its_setting_is_tried():
    run = overlapping(False)
    change = change_for(picture(run), diagnosed(run))
    assert (change.code, change.setting, change.value) == ("H309", "max_running", 77)


def test_is_clear():
    assert isinstance(check("H309", overlapping(True)), Clear)


def test_cannot_tell():
    assert isinstance(check("H309", server([BUSY])), CannotTell)
"""

LEVER = """
[[lever]]
pattern = "toy"
acts_on = "a toy"
causes = ["H309"]
"""

FAULT = """    Fault(
        name="H309",
        expected="H309",
        finding="toy-overlap-off",
        what="no overlap of host and GPU, and a host 1, 2 or 4 steps slower",
        plant=_all(_set(overlap=(False, False, False)), _host(1.0, 2.0, 4.0)),
    ),
"""

ROW = "| H309 toy-overlap-off | setting off | - | setting unknown | H301: a toy |\n"

RULE_FILES = {
    "src/stepline/findings/rules/toy_overlap_off.py": RULE,
    "tests/rules/H309/test_toy_overlap_off.py": RULE_TEST,
}
"""New files."""
RULE_LINES = {
    "src/stepline/findings/registry.py": (
        ("    trace_integrity,\n", "    toy_overlap_off,\n    trace_integrity,\n"),
        ("    process_contention.RULE,\n", "    process_contention.RULE,\n    toy_overlap_off.RULE,\n"),
    ),
    "src/stepline/facts/levers.toml": (("\n[[lever]]\n", LEVER + "\n[[lever]]\n"),),
    "src/stepline/lab/sim/faults.py": (
        ('    Fault(\n        name="H302",\n', FAULT + '    Fault(\n        name="H302",\n'),
    ),
    "docs/identifiability.md": (("| K401 ", ROW + "| K401 "),),
}
"""By file that exists: the text before which, at its first place, the new text goes, and both together."""

ENGINE = '''"""Toy: its step lines and `/metrics`."""

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, ClassVar

from stepline.evidence.metrics import EngineMetrics
from stepline.evidence.origin import Origin
from stepline.evidence.run import Run
from stepline.evidence.scheduler import DecodeReport
from stepline.sources.engine import Engine, MetricsReader
from stepline.sources.fold import fold
from stepline.sources.logs.logbook import LogBook
from stepline.sources.logs.template import Templates

if TYPE_CHECKING:
    from stepline.sources.http import Http
    from stepline.sources.surface import Found

PREFIX = "toy_"
NAMES = {PREFIX + "running": "running"}
_STEP = re.compile(r"toy step: running (\\d+) took ([\\d.]+) ms")


class ToyLog:
    """Collects its steps."""

    MARKS: ClassVar[tuple[str, ...]] = ("toy step",)
    TEMPLATES: ClassVar[Templates | None] = None

    def __init__(self, file: str) -> None:
        self.book = LogBook(file, "toy")

    @staticmethod
    def recognises(head: bytes) -> bool:
        """True when the opening bytes hold a step."""
        return b"toy step:" in head

    def feed(self, number: int, line: str) -> None:
        """Take one line."""
        if found := _STEP.search(line):
            self.book.add(
                DecodeReport(
                    seq=self.book.next_seq(),
                    origin=self.book.at(number),
                    instrument="step",
                    running=int(found[1]),
                    step_ms=float(found[2]),
                )
            )

    def finish(self) -> Run:
        """Everything read."""
        return self.book.finish()


def to_metrics(
    samples: Iterable[tuple[str, Mapping[str, str], float]], origin: Origin, time_s: float | None = None
) -> EngineMetrics:
    """Fold one scrape into a record."""
    return fold(samples, NAMES, origin, time_s)


def _find(http: "Http") -> "Found | None":
    from stepline.sources.openai_dialect import Completions  # noqa: PLC0415  # only for a running server
    from stepline.sources.surface import Found  # noqa: PLC0415

    if not http.get("/toy").ok:
        return None
    protocol = Completions("toy", takes_ids=False, running_usage=False, extensions=False)
    return Found(engine="toy", dialect=protocol)


ENGINE = Engine(name="toy", log=ToyLog, metrics=MetricsReader(PREFIX, to_metrics), find=_find)
'''

ENGINE_TEST = """from stepline.sources.read import read_one_run


def test_its_steps_are_read(tmp_path):
    (tmp_path / "toy.log").write_text("toy step: running 4 took 5.0 ms\\n")
    run = read_one_run([tmp_path])
    assert run.server.engine.value == "toy"
    assert [report.step_ms for report in run.decodes] == [5.0]
"""

ENGINE_FILES = {
    "src/stepline/sources/engines/toy.py": ENGINE,
    "tests/unit/sources/engines/test_toy.py": ENGINE_TEST,
}
ENGINE_LINES = {
    "src/stepline/sources/engines/__init__.py": (
        ("import dynamo, ", "import dynamo, toy, "),
        ("    dynamo.ENGINE,\n", "    dynamo.ENGINE,\n    toy.ENGINE,\n"),
    ),
}

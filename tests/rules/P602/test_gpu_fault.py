import msgspec
import pytest

from stepline.evidence.origin import Origin
from stepline.evidence.run import Run
from stepline.evidence.scheduler import EventKind, SchedulerEvent
from stepline.findings.outcome import CannotTell, Clear, Fired
from stepline.sources.read import read_one_run as read
from tests.rules.server import Stage, check, diagnosed, server


def told(kind: EventKind, *, repeats: int = 1) -> SchedulerEvent:
    return SchedulerEvent(
        seq=9,
        origin=Origin("server.log", 9),
        kind=kind,
        text="NVRM: Xid (PCI:0000:3b:00): 79",
        repeats=repeats,
    )


def serving(*events: SchedulerEvent) -> Run:
    return msgspec.structs.replace(server([Stage(running=8, step_ms=5.0)]), events=events)


@pytest.mark.parametrize(("repeats", "headline"), [(1, "the log names an error of the GPU"), (3, "3 errors")])
def test_fires_on_a_line_of_the_driver(repeats, headline):
    answer = check("P602", serving(told("gpu-fault", repeats=repeats)))
    assert isinstance(answer, Fired)
    assert answer.status == "suspected"
    assert headline in answer.headline
    assert str(answer.evidence[0].origin) == "server.log:9"


def test_it_makes_a_note_and_no_finding():
    said = diagnosed(serving(told("gpu-fault")))
    assert "P602" not in [finding.code for finding in said.findings]
    assert any(note.text.startswith("P602") for note in said.notes)


@pytest.mark.parametrize("run", [serving(), serving(told("crash")), Run(events=(told("ready"),))])
def test_a_log_without_such_a_line_is_clear(run):
    assert isinstance(check("P602", run), Clear)


def test_cannot_tell_without_a_log():
    assert isinstance(check("P602", Run()), CannotTell)


SGLANG = (
    "[2026-11-29 10:00:00] Decode batch. #running-req: 8, #token: 900, token usage: 0.01, "
    "gen throughput (token/s): 900.0, #queue-req: 0"
)
VLLM = (
    "INFO 11-29 10:00:00 loggers.py:116] Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: "
    "900.0 tokens/s, Running: 8 reqs, Waiting: 0 reqs, GPU KV cache usage: 1.0%, Prefix cache hit rate: 0.0%"
)


@pytest.mark.parametrize("engine", [SGLANG, VLLM], ids=["sglang", "vllm"])
@pytest.mark.parametrize(
    "line",
    [
        "kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.",
        "RuntimeError: CUDA error: uncorrectable ECC error encountered",
        "torch.AcceleratorError: CUDA error: an illegal memory access was encountered",
        "CUDA error: unspecified launch failure",
    ],
)
def test_such_lines_are_read_from_every_engine_s_log(tmp_path, engine, line):
    (tmp_path / "server.log").write_text(f"{engine}\n{line}\n{engine}\n")
    run = read([tmp_path / "server.log"])
    assert [(event.kind, event.origin.line) for event in run.events] == [("gpu-fault", 2)]
    assert isinstance(check("P602", run, gpu=None), Fired)

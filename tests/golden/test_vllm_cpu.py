"""A real vLLM 0.32 on the CPU, recorded by `stepline diagnose URL` at 1, 16 and 4 streams: log, metrics, client.

Its machine's own description is taken out of `server_info.json`, its folders out of the log; the trace is left out.
"""

from pathlib import Path

import pytest

from stepline.model.measure.law import StepLaw
from stepline.model.picture.assess import assess
from stepline.model.picture.picture import Setup
from stepline.sources.read import read_one_run as read

CAPTURE = Path(__file__).parents[1] / "data" / "vllm-cpu"
FILES = sorted(path for path in CAPTURE.iterdir())


def test_every_file_is_known_and_none_is_damaged():
    run = read([CAPTURE])
    assert [file.note for file in run.files if file.kind is None] == []
    assert [file.path for file in run.files if file.damaged] == []


@pytest.mark.parametrize("without", ["server_info.json", "server.log"])
def test_log_and_server_info_say_the_same(without):
    facts = read([path for path in FILES if not path.name.startswith(without)]).server
    said = (facts.engine, facts.version, facts.context_length, facts.decode_graphs, facts.dummy_weights)
    assert tuple(fact.value for fact in said) == ("vllm", "0.32.0", 2048, False, True)


def test_the_log_alone_has_its_lines():
    run = read([path for path in FILES if path.name.startswith("server.log")])
    assert [report.instrument for report in run.decodes] == ["interval"] * len(run.decodes)
    assert max(report.running for report in run.decodes) >= 15
    # V0 prints the swap space of a GPU engine as "CPU KV cache", so a line of that name alone is no pool.
    assert run.server.kv_capacity_tokens is None
    assert {scrape.kv_capacity_tokens for scrape in read([CAPTURE]).metrics} == {262_144}


def test_the_batch_is_the_engines_and_the_steps_are_the_clients():
    picture = assess(read([CAPTURE]), Setup())
    assert (picture.load.running, picture.load.queued) == (16, 0)
    assert isinstance(picture.law, StepLaw)
    assert [point.running for point in picture.law.points] == [1, 4, 16]
    assert picture.law.instrument == "streams of one batch (client)"

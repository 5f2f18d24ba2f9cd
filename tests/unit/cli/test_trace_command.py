import argparse
import json

import pytest

from stepline.cli import trace
from stepline.errors import Inconclusive, UnreadableEvidence, UsageError
from stepline.report.trace_terminal import _read_of
from stepline.tasks import traces
from stepline.tasks.traces import TraceRequest
from tests.unit.trace_writer import TraceWriter, decode_trace


def run(*arguments):
    parser = argparse.ArgumentParser()
    trace.add_arguments(parser)
    return trace.run(parser.parse_args([*map(str, arguments)]))


def test_the_first_line_answers(tmp_path, capsys):
    decode_trace().save(tmp_path / "a.json.gz")
    assert run(tmp_path, "--step-ms", "1.0") == 0
    out, err = capsys.readouterr()
    assert out.startswith("Decode at batch 8: 0.770 ms of GPU work a step, 78 % of it gemm.")
    assert "busy 77 % of the unprofiled 1.00 ms step" in " ".join(out.split())
    assert max(map(len, out.splitlines())) <= 100
    assert err == ""


def test_json_on_stdout_is_all_there_is(tmp_path, capsys):
    decode_trace().save(tmp_path / "a.json")
    assert run(tmp_path / "a.json", "--json", "-") == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["ranks"][0]["groups"][0]["steps"] == 5


def test_ranks_of_a_folder_are_compared(tmp_path, capsys):
    decode_trace(rank=1, late_us=30.0).save(tmp_path / "TP-1.json.gz")
    decode_trace(rank=0).save(tmp_path / "TP-0.json.gz")
    (tmp_path / "sweep.json").write_text('{"C": 1}')
    assert run(tmp_path) == 0
    assert "Rank 0: 5 collectives, 0.150 ms waiting, mostly for rank 1" in " ".join(
        capsys.readouterr().out.split()
    )


def test_processes_give_the_same_summary(tmp_path, monkeypatch):
    paths = [decode_trace(rank=rank).save(tmp_path / f"TP-{rank}.json.gz") for rank in range(2)]
    request = TraceRequest(paths=tuple(paths))
    alone = traces.summarise(request)
    monkeypatch.setattr(traces, "PARALLEL_FROM_BYTES", 0)
    monkeypatch.setattr(traces.os, "cpu_count", lambda: 2)
    assert traces.summarise(request) == alone


@pytest.mark.parametrize("options", [("--context-length", "0"), ("--step-ms", "-1")])
def test_impossible_options_are_refused(tmp_path, options):
    with pytest.raises(UsageError, match=options[0]):
        run(tmp_path, *options)


def test_a_missing_path_and_an_empty_folder(tmp_path):
    with pytest.raises(UnreadableEvidence, match="does not exist"):
        run(tmp_path / "nowhere")
    with pytest.raises(UnreadableEvidence, match="no trace below"):
        run(tmp_path)


def test_a_trace_without_gpu_work_is_inconclusive(tmp_path):
    writer = TraceWriter()
    writer.span("cpu_op", "aten::add", 5.0, 1.0)
    with pytest.raises(Inconclusive, match="no GPU work"):
        run(writer.save(tmp_path / "t.json"))


def test_a_trace_cut_short_before_its_gpu_work_says_so(tmp_path):
    writer = TraceWriter()
    for at in range(5):
        writer.span("cpu_op", "aten::add", 5.0 * at, 1.0)
    whole = writer.save(tmp_path / "t.json").read_text()
    cut = tmp_path / "cut.json"
    cut.write_text(whole[: whole.rindex("aten::add")])
    with pytest.raises(Inconclusive, match=r"cut short .*copy it again"):
        run(cut)


def test_the_table_says_what_reading_a_kernels_source_told():
    said = _read_of("_tiled_sparse_decode_kernel")
    assert said[0] == "reads the cache once for each head"
    assert said[1].startswith("in place of FlashMLA")
    assert _read_of("smxx_clean_logits") == ["as long as the configured context"]
    assert _read_of("nvjet_sm90_tst_64x16") == []

"""Tables as people write them: names, units, arms in rows and in columns, and what must not be guessed."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepline.errors import UnreadableEvidence
from stepline.evidence.run import Run
from stepline.sources.read import read
from stepline.sources.readers.columns import plain, understand
from stepline.sources.readers.table import read_rows


def run_of(folder: Path, text: str) -> Run:
    (folder / "t.csv").write_text(text)
    return read([folder / "t.csv"])


NAMES: dict[str, tuple[Any, ...] | None] = {
    "Output tok/s": ("tok_s", "mean", 1.0, None),
    "aggregate_tok_s": ("tok_s", "mean", 1.0, None),
    "tokens_per_second": ("tok_s", "mean", 1.0, None),
    "tok_s_per_gpu": ("tok_s", "mean", 1.0, None),
    "per_request_tok_s": ("tok_s_per_request", "mean", 1.0, None),
    "tok/s/user": ("tok_s_per_request", "mean", 1.0, None),
    "TPOT (ms)": ("tpot", "mean", 1.0, None),
    "median_tpot_ms": ("tpot", "p50", 1.0, None),
    "median_tpot": ("tpot", "p50", 1000.0, None),
    "p99_ttft_ms": ("ttft", "p99", 1.0, None),
    "ttft_p50_ms": ("ttft", "p50", 1.0, None),
    "ttft_s": ("ttft", "mean", 1000.0, None),
    "client_itl_p50_ms": ("itl", "p50", 1.0, None),
    "log_implied_step_ms": ("step", "mean", 1.0, None),
    "ms_per_step": ("step", "mean", 1.0, None),
    "median_lat_s": ("e2e", "p50", 1000.0, None),
    "mean_e2el_ms": ("e2e", "mean", 1.0, None),
    "qps": ("requests_s", "mean", 1.0, None),
    "request_throughput": ("requests_s", "mean", 1.0, None),
    "oneshot_tok_s": ("tok_s", "mean", 1.0, "oneshot"),
    "split_kv_tok_s": ("tok_s", "mean", 1.0, "split_kv"),
    "prefill_tok_s": None,
    "p95_tpot_ms": None,
    "ttft": None,
    "mean_e2el_from_schedule_ms": None,
    "tokens": None,
    "model": None,
}


@pytest.mark.parametrize("name", NAMES)
def test_a_column_is_told_by_its_name(name: str) -> None:
    column = understand(plain(name))
    said = (column.quantity, column.statistic, column.factor, column.arm) if column else None
    assert said == NAMES[name]


def test_load_in_the_name() -> None:
    column = understand("live_ctx_2048_x8_tok_s")
    assert column is not None
    assert (column.streams, column.context, column.arm) == (8, 2048, None)


@given(st.text(max_size=40))
def test_no_name_raises(name: str) -> None:
    understand(plain(name))


def trials(run: Run) -> list[tuple[Any, ...]]:
    return [(t.lever, t.value_before, t.before, t.after, t.measure) for t in run.levers]


def test_arms_in_rows_differ_in_one_flag(tmp_path: Path) -> None:
    run = run_of(tmp_path, "max_num_seqs,prefix_caching,output_tok_s\n2,off,27.7\n64,off,46.5\n64,on,81.8\n")
    assert trials(run) == [
        ("max_num_seqs=64", "2", 27.7, 46.5, "tok_s"),
        ("prefix_caching=on", "off", 46.5, 81.8, "tok_s"),
    ]
    assert run.levels[0].arm == "max_num_seqs=2, prefix_caching=off"


def test_arms_that_differ_in_two_flags_are_not_compared(tmp_path: Path) -> None:
    assert run_of(tmp_path, "profile,max_num_seqs,concurrency,tok_s\n1M,6,1,32\n32K,36,1,36\n").levers == ()


def test_arms_at_another_load_are_not_compared(tmp_path: Path) -> None:
    assert run_of(tmp_path, "backend,concurrency,tok_s\na,1,32\nb,2,36\n").levers == ()


def test_arms_that_made_other_work_are_not_compared(tmp_path: Path) -> None:
    text = "response_format,output_tokens,decode_tok_s\njson,1581,29.0\nremoved,2972,51.0\n"
    assert run_of(tmp_path, text).levers == ()


def test_arms_in_columns(tmp_path: Path) -> None:
    run = run_of(tmp_path, "concurrency,new_tok_s,stock_tok_s\n8,375.2,356.1\n16,608.1,\n")
    assert trials(run) == [("arm=new", "stock", 356.1, 375.2, "tok_s")]
    assert run.levers[0].concurrency == 8
    assert [(level.arm, level.tok_s) for level in run.levels] == [
        ("arm=new", 375.2),
        ("arm=stock", 356.1),
        ("arm=new", 608.1),
    ]


def test_arms_in_rows_with_the_load_in_columns(tmp_path: Path) -> None:
    run = run_of(
        tmp_path,
        "context_length,live_ctx_2048_x1_tok_s,live_ctx_2048_x8_tok_s\n1048576,98.4,32.1\n131072,147.93,85.98\n",
    )
    assert [(t.concurrency, t.context_tokens, t.before, t.after) for t in run.levers] == [
        (1, 2048, 98.4, 147.93),
        (8, 2048, 32.1, 85.98),
    ]


def test_repeats_are_averaged(tmp_path: Path) -> None:
    run = run_of(tmp_path, "build,run,tok_s\nmain,1,19\nmain,2,21\npatch,1,30\n")
    assert trials(run) == [("build=patch", "main", 20.0, 30.0, "tok_s")]


def test_times_compare_as_times(tmp_path: Path) -> None:
    run = run_of(tmp_path, "global_batch,tokenizer,client_itl_p50_ms\n1024,normal,180\n1024,skip,39\n")
    assert trials(run) == [("tokenizer=skip", "normal", 180.0, 39.0, "ms")]
    assert run.levers[0].speedup == pytest.approx(180 / 39)


def test_the_named_baseline_comes_before(tmp_path: Path) -> None:
    run = run_of(tmp_path, "arm,eval_s,output_tok_s\neplb,1466.5,91.37\ncontrol,463.11,291.66\n")
    assert trials(run) == [("arm=eplb", "control", 291.66, 91.37, "tok_s")]


def test_percent_faster(tmp_path: Path) -> None:
    run = run_of(tmp_path, "concurrency,assisted_faster_than_cold_pct\n4,59.3\n")
    assert run.levers[0].lever == "assisted instead of cold"
    assert run.levers[0].speedup == pytest.approx(1.593)


def test_levels_with_state(tmp_path: Path) -> None:
    level = run_of(tmp_path, "concurrency,tpot_ms,running,waiting,kv_usage_pct\n12,423,8,4,98.7\n").levels[0]
    assert (level.concurrency, level.running, level.queued) == (12, 8, 4)
    assert level.pool_usage == pytest.approx(0.987)


def test_seconds_of_inferencex(tmp_path: Path) -> None:
    text = "isl,osl,max_concurrency,completed,duration,output_throughput,median_ttft,p99_ttft,median_tpot\n"
    level = run_of(tmp_path, text + "1024,128,4,40,31.1,164.7,0.265,0.585,0.0214\n").levels[0]
    assert (level.ttft_ms, level.tpot_ms, level.requests) == (265.0, pytest.approx(21.4), 40)


def test_a_batch_and_its_step(tmp_path: Path) -> None:
    run = run_of(tmp_path, "batch,client_itl_ms,log_implied_step_ms\n96,110,60\n")
    assert (run.step_rows[0].running, run.step_rows[0].step_ms, run.levels[0].itl_ms) == (96, 60, 110)


def test_contexts_in_thousands(tmp_path: Path) -> None:
    assert run_of(tmp_path, "context,decode_tok_s\n8K,503\n1M,50\n").levels[1].input_tokens == 1048576


@pytest.mark.parametrize("header", ["M,default_us,tuned_us", "a,b,c"])
def test_a_table_of_something_else_names_its_columns(tmp_path: Path, header: str) -> None:
    named = header.replace(",", ", ")
    with pytest.raises(UnreadableEvidence, match=rf"columns \({named}\)"):
        run_of(tmp_path, header + "\n1,23.5,23.4\n")


def test_dcgm_percentages(tmp_path: Path) -> None:
    (tmp_path / "gpu.json").write_text('{"dcgm_sm_active_pct": 34.26, "sm_clock_mhz_sustained": 628}')
    sample = read([tmp_path]).gpu_samples[0]
    assert (sample.sm_busy, sample.sm_clock_mhz) == (pytest.approx(0.3426), 628)


cells = st.none() | st.floats() | st.text(max_size=6) | st.booleans() | st.integers()


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from([plain(name) for name in NAMES] + ["concurrency", "run", "arm", "context"]),
            cells,
            min_size=1,
        ),
        min_size=1,
        max_size=4,
    )
)
def test_no_rows_raise_anything_but_unreadable(rows: list[dict[str, Any]]) -> None:
    try:
        run = read_rows(rows, "t.json")
    except UnreadableEvidence:
        return
    for trial in run.levers:
        assert trial.before
        assert trial.after

"""Tables as people write them: names, units, arms in rows and in columns, and what must not be guessed."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepline.errors import UnreadableEvidence
from stepline.evidence.run import Run
from stepline.sources.read import read_one_run as read
from stepline.sources.readers.table import read_rows


def run_of(folder: Path, text: str) -> Run:
    (folder / "t.csv").write_text(text)
    return read([folder / "t.csv"])


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
        ("arm=stock", 356.1),
        ("arm=new", 375.2),
        ("arm=new", 608.1),
    ]


def test_arms_in_rows_with_the_load_in_columns(tmp_path: Path) -> None:
    run = run_of(
        tmp_path,
        "context_length,live_ctx_2048_c1_tok_s,live_ctx_2048_c8_tok_s\n1048576,98.4,32.1\n131072,147.93,85.98\n",
    )
    assert [
        (t.lever, t.value_before, t.concurrency, t.context_tokens, t.before, t.after) for t in run.levers
    ] == [
        ("context_length=1048576", "131072", 1, 2048, 147.93, 98.4),
        ("context_length=1048576", "131072", 8, 2048, 85.98, 32.1),
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


def test_changes_by_name_with_before_and_after(tmp_path: Path) -> None:
    run = run_of(tmp_path, "after,lever,running,before\n50,overlap schedule on,8,40\n41,marlin,8,40\n")
    assert [(t.lever, t.running, t.before, t.after) for t in run.levers] == [
        ("marlin", 8, 40, 41),
        ("overlap schedule on", 8, 40, 50),
    ]


def test_changes_by_name_in_percent(tmp_path: Path) -> None:
    run = run_of(tmp_path, "setting,change (%)\nMTP,+47\n")
    assert (run.levers[0].lever, run.levers[0].speedup) == ("MTP", pytest.approx(1.47))


def test_times_of_kernels_are_no_server(tmp_path: Path) -> None:
    run = run_of(tmp_path, "bytes,oneshot_us,nccl_us\n1024,6.1,13.5\n")
    assert run.empty
    assert run.files[0].kind == "micro-benchmark"


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


@pytest.mark.parametrize("header", ["a,b,c"])
def test_a_table_of_something_else_names_its_columns(tmp_path: Path, header: str) -> None:
    named = header.replace(",", ", ")
    with pytest.raises(UnreadableEvidence, match=rf"columns \({named}\)"):
        run_of(tmp_path, header + "\n1,23.5,23.4\n")


def test_dcgm_percentages(tmp_path: Path) -> None:
    (tmp_path / "gpu.json").write_text('{"dcgm_sm_active_pct": 34.26, "sm_clock_mhz_sustained": 628}')
    sample = read([tmp_path]).gpu_samples[0]
    assert (sample.sm_busy, sample.sm_clock_mhz) == (pytest.approx(0.3426), 628)


NAMES = [
    "concurrency",
    "run",
    "arm",
    "context",
    "tok_s",
    "median_tpot",
    "ttft_s",
    "running",
    "before",
    "after",
    "note",
]
cells = st.none() | st.floats() | st.text(max_size=6) | st.booleans() | st.integers()


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(NAMES),
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


def test_a_letter_within_a_name_is_no_load(tmp_path: Path) -> None:
    level = run_of(tmp_path, "concurrency,bench_n,tok_s\n16,2000,410\n").levels[0]
    assert (level.concurrency, level.running) == (16, None)


def test_records_of_requests_are_one_level(tmp_path: Path) -> None:
    rows = "".join(f"{600 + i},{20 + i % 2},{2600 + i},1600,{100}\n" for i in range(6))
    level = run_of(tmp_path, "ttft_ms,tpot_ms,e2e_ms,isl,osl\n" + rows).levels[0]
    assert (level.requests, level.tpot_ms, level.output_tokens) == (6, 20.5, 100)
    assert level.origin.field == "requests"


def test_tokens_of_all_requests_are_no_length(tmp_path: Path) -> None:
    text = "completed,output_tokens,mean_tpot_ms,mean_e2el_ms\n929,1315506,18.6,27000\n"
    assert run_of(tmp_path, text).levels[0].output_tokens == pytest.approx(1416.04, rel=1e-4)


def test_a_contradiction_is_said_once_for_all_rows(tmp_path: Path) -> None:
    run = run_of(tmp_path, "concurrency,tok_s,ttft_ms,e2e_ms\n4,100,90,30\n8,150,80,20\n")
    (doubt,) = run.doubts
    assert "takes 3 times the whole request" in doubt.text
    assert "1 further row" in doubt.text
    assert [(level.tok_s, level.ttft_ms, level.e2e_ms) for level in run.levels] == [
        (100, None, None),
        (150, None, None),
    ]


def test_a_table_that_names_its_quantities_in_the_first_column(tmp_path: Path) -> None:
    (tmp_path / "t.md").write_text(
        "| Metric | eager | cuda graph |\n|---|---|---|\n| Mean TPOT (ms) | 9.1 | 3.2 |\n| Output tok/s | 109 | 312 |\n"
    )
    run = read([tmp_path])
    assert trials(run) == [("arm=eager", "cuda graph", 312.0, 109.0, "tok_s")]


def test_pairs_in_lines(tmp_path: Path) -> None:
    (tmp_path / "out.txt").write_text("done: concurrency=16 tok_s=28 ttft=1.2s\nbye\n")
    level = read([tmp_path]).levels[0]
    assert (level.concurrency, level.tok_s, level.ttft_ms) == (16, 28, 1200)


def test_a_printed_result_is_a_level(tmp_path: Path) -> None:
    (tmp_path / "bench.txt").write_text(
        "============ Serving Benchmark Result ============\n"
        "Successful requests:                     40        \n"
        "Maximum request concurrency:             4         \n"
        "Benchmark duration (s):                  80.00     \n"
        "Total generated tokens:                  36000     \n"
        "Output token throughput (tok/s):         450.00    \n"
        "Peak output token throughput (tok/s):    700.00    \n"
        "Total Token throughput (tok/s):          900.00    \n"
        "---------------Time to First Token----------------\n"
        "Mean TTFT (ms):                          520.00    \n"
        "-----Time per Output Token (excl. 1st token)------\n"
        "Mean TPOT (ms):                          8.20      \n"
        "P99 TPOT (ms):                           9.90      \n"
        "---------------Inter-token Latency----------------\n"
        "Mean ITL (ms):                           24.00     \n"
        "==================================================\n"
    )
    (level,) = read([tmp_path]).levels
    assert (level.concurrency, level.tok_s, level.tpot_ms, level.tpot_p99_ms) == (4, 450, 8.2, 9.9)
    assert (level.ttft_ms, level.chunk_gap_ms, level.itl_ms, level.output_tokens) == (520, 24, None, 900)


def test_loads_in_the_header_and_quantities_at_the_side(tmp_path: Path) -> None:
    (tmp_path / "t.md").write_text(
        "| Config | 1 user | 8 users |\n|---|---|---|\n| baseline (tok/s) | 45 | 210 |\n| eager (tok/s) | 21 | 120 |\n"
    )
    run = read([tmp_path])
    assert trials(run) == [
        ("arm=eager", "baseline", 45, 21, "tok_s"),
        ("arm=eager", "baseline", 210, 120, "tok_s"),
    ]
    assert [trial.concurrency for trial in run.levers] == [1, 8]


def test_prompts_alone_are_no_decoding(tmp_path: Path) -> None:
    text = "model,backend,test,t/s\nllama 7B,CUDA,tg128,132.19 ± 0.55\nllama 7B,CUDA,pp512,2368.80 ± 93.24\n"
    run = run_of(tmp_path, text)
    assert [level.tok_s for level in run.levels] == [132.19]


def test_json_lines_among_others(tmp_path: Path) -> None:
    (tmp_path / "out.log").write_text(
        'starting\n{"concurrency": 4, "output_throughput": 120.0}\nINFO x\n'
        '{"concurrency": 8, "output_throughput": 190.0}\n'
    )
    assert [level.concurrency for level in read([tmp_path]).levels] == [4, 8]


def test_percentiles_without_a_quantity_are_no_reason_to_pass_a_table_over(tmp_path: Path) -> None:
    text = "Name,Request Count,Failure Count,Average Response Time,Requests/s,50%,99%\nx,120,0,5310.5,1.92,5200,9500\n"
    assert run_of(tmp_path, text).levels[0].requests_s == 1.92

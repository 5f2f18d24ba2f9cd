# ruff: noqa: E501  # an engine's lines are as long as they are
"""Start-up lines of both eras, settings in both spellings, events, remarks and secrets."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepline.evidence.run import Run
from stepline.sources.engines.sglang.log import SglangLog
from stepline.sources.engines.sglang.settings import GIB, parse_server_args
from stepline.sources.pyrepr import parse_repr


def read(*lines: str) -> Run:
    log = SglangLog("server.log")
    for number, line in enumerate(lines, start=1):
        log.feed(number, line)
    return log.finish()


STAMP = "[2025-11-29 16:31:54 TP0] "
LINES: dict[str, tuple[str, dict[str, Any]]] = {
    "0.4.1 pools": (
        "max_total_num_tokens=2980168, max_prefill_tokens=16384, max_running_requests=4097, context_len=131072",
        {
            "kv_capacity_tokens": 2980168,
            "max_running": 4097,
            "context_length": 131072,
            "max_prefill_tokens": 16384,
        },
    ),
    "0.4.10 pools": (
        "max_total_num_tokens=5, chunked_prefill_size=8192, max_prefill_tokens=16384, max_running_requests=8, context_len=7, available_gpu_mem=6.95 GB",
        {"chunked_prefill_tokens": 8192, "max_running": 8},
    ),
    "weights": (
        "Load weight end. type=LlamaForCausalLM, dtype=torch.bfloat16, avail mem=124.07 GB, mem usage=15.02 GB.",
        {"weight_bytes": 15.02 * GIB},
    ),
    "weights with quantisation": (
        "Load weight end. elapsed=3.1 s, type=X, quant=fp8, avail mem=1.00 GB, mem usage=2.00 GB.",
        {"quantization": "fp8", "weight_bytes": 2 * GIB},
    ),
    "KV before 0.5.15": (
        "KV Cache is allocated. #tokens: 788347, K size: 48.12 GB, V size: 48.12 GB",
        {"kv_pool_bytes": 96.24 * GIB, "kv_dtype": None},
    ),
    "KV with dtype": (
        "KV Cache is allocated. dtype: torch.float8_e4m3fn, #tokens: 10, K size: 1.00 GB, V size: 2.00 GB",
        {"kv_pool_bytes": 3 * GIB, "kv_dtype": "float8_e4m3fn"},
    ),
    "KV of MLA": (
        "KV Cache is allocated. dtype: torch.bfloat16, #tokens: 10, KV size: 12.50 GB",
        {"kv_pool_bytes": 12.5 * GIB},
    ),
    "graphs up to 0.5.12": (
        "Capture cuda graph bs [1, 2, 4, 8, 16, 24]",
        {"decode_graph_sizes": (1, 2, 4, 8, 16, 24), "decode_graphs": True},
    ),
    "graphs from 0.5.15, sizes at the beginning": (
        "Capture target decode CUDA graph begin. backend=full, num_tokens_per_req=1, bs=[1, 2, 4], avail mem=7.10 GB",
        {"decode_graph_sizes": (1, 2, 4)},
    ),
    "graphs from 0.5.15, sizes at the end": (
        "Capture target decode CUDA graph end. bs=[1, 2], elapsed=0.89 s, mem usage=0.15 GB, avail mem=6.95 GB",
        {"decode_graph_sizes": (1, 2)},
    ),
    "graphs of speculation": (
        "Capture target verify CUDA graph begin. backend=full, num_tokens_per_req=4, bs=[1, 2], avail mem=7.10 GB",
        {"decode_graph_sizes": (1, 2)},
    ),
    "prefill graphs are not decode graphs": (
        "Capture target prefill CUDA graph begin. backend=breakable, num_tokens=[4, 8], bs=[4, 8], avail mem=1 GB",
        {"decode_graph_sizes": None},
    ),
    "speculation's silent cap, spoken": (
        "Max running requests is reset to 48 for speculative decoding. You can override this.",
        {"max_running": 48},
    ),
    "cap cut by capacity": (
        "max_running_requests was reduced from the requested 512 to 96 (per dp worker) due to the available KV cache capacity.",
        {"max_running": 96, "max_running_requested": 512},
    ),
    "attention backend 0.4.6": (
        "Attention backend not set. Use fa3 backend by default.",
        {"attention_backend": "fa3"},
    ),
    "attention backend by model": (
        "Use dsv4 attention backend for DeepseekV4ForCausalLM, setting page_size to 256.",
        {"attention_backend": "dsv4"},
    ),
}


@pytest.mark.parametrize("name", LINES)
def test_start_up_line(name: str) -> None:
    line, wants = LINES[name]
    server = read(STAMP + line).server
    for attribute, value in wants.items():
        said = getattr(server, attribute)
        if isinstance(value, float):
            assert said.value == pytest.approx(value)
        else:
            assert (said.value if said else None) == value, attribute
        if said:
            assert str(said.origin) == "server.log:1"


ARGUMENTS = {
    "model_path": "models/a 'quoted', path",
    "tp_size": 4,
    "dp_size": 2,
    "context_length": 1048576,
    "disable_cuda_graph": False,
    "disable_overlap_schedule": True,
    "quantization": None,
    "api_key": "topsecretkey",
    "admin_api_key": "othersecret",
    "json_model_override_args": '{"tp_size": 99}',
    "attention_backend": "fa3",
    "speculative_accept_threshold_single": 1.0,
}
AS_CALL = "ServerArgs(" + ", ".join(f"{name}={value!r}" for name, value in ARGUMENTS.items())
AS_CALL += ", cuda_graph_config=CudaGraphConfig(decode=PhaseConfig(backend='full', max_bs=32, bs=[1, 2, 4]), prefill=PhaseConfig(backend='disabled', bs=[9])), role=<Role.NULL: 'null'>, page_size=64)"
AS_DICT = repr({**ARGUMENTS, "cuda_graph_config": {"decode": {"bs": [1, 2, 4]}}, "page_size": 64})


@pytest.mark.parametrize("dump", [AS_CALL, AS_DICT], ids=["call", "dict of 0.5.23"])
def test_settings_in_both_spellings(dump: str) -> None:
    run = read(f"[2025-11-29 16:31:54] server_args={dump}")
    server = run.server
    values = (
        server.model,
        server.tp,
        server.dp,
        server.context_length,
        server.attention_backend,
        server.page_tokens,
    )
    assert [value.value for value in values if value] == [
        "models/a 'quoted', path",
        4,
        2,
        1048576,
        "fa3",
        64,
    ]
    assert server.decode_graph_sizes is not None
    assert server.decode_graph_sizes.value == (1, 2, 4)
    assert server.overlap_schedule is not None
    assert not server.overlap_schedule.value
    assert server.quantization is None


def test_no_secret_reaches_a_record() -> None:
    log = SglangLog("server.log")
    for number, line in enumerate(
        (
            f"[2025-11-29 16:31:54] server_args={AS_CALL}",
            f"[2025-11-29 16:31:54] server_args={AS_DICT}",
            "falling back: launch_command=python -m sglang.launch_server --api-key topsecretkey --admin-api-key=othersecret",
            "WARNING slow tokenizer, Authorization: Bearer topsecretkey, HF_TOKEN=hf_abcdefghijklmnop",
            'CUDA out of memory {"api_key": "topsecretkey", "admin_api_key": "othersecret"}',
            "Profiling starts at https://user:topsecretkey@host/ " + "x" * 340 + " hf_abcdefghijklmnop",
            "[2025-11-29 16:31:54] server_args=ServerArgs(model_path='https://u:topsecretkey@h/m', tp_size=1)",
        ),
        start=1,
    ):
        log.feed(number, line)
    run = log.finish()
    served = log.book.earlier[-1]
    kept = msgspec.json.encode((run, log.book.earlier)).decode()
    assert len(served.notices) == 2
    assert len(served.events) == 2
    for secret in ("topsecretkey", "othersecret", "hf_abc"):
        assert secret not in kept


EVENT_LINES = {
    "Decode out of memory happened. #retracted_reqs: 3, #new_token_ratio: 0.4 -> 0.6": ("retraction", 3.0),
    "KV cache pool is full. Retract requests. #retracted_reqs: 2, #new_tokens_gained: 99, #new_token_ratio: 0.4 -> 0.6": (
        "retraction",
        2.0,
    ),
    "KV cache pool is full. Retract requests. #retracted_reqs: 1, #aborted_retracted_reqs: 0, #mamba_num_gained: 1, #new_token_ratio: 0.4 -> 0.6": (
        "retraction",
        1.0,
    ),
    "The server is fired up and ready to roll!": ("ready", None),
    "Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)": ("crash", None),
    "Entering DeepGEMM JIT Pre-Compile session. It may take a long time": ("jit-compile", None),
    'INFO:     10.0.0.1:35262 - "POST /generate HTTP/1.1" 503 Service Unavailable': ("disconnect", None),
}


@pytest.mark.parametrize("line", EVENT_LINES)
def test_event(line: str) -> None:
    run = read(STAMP + line)
    assert [(event.kind, event.amount) for event in run.events] == [EVENT_LINES[line]]


def test_a_request_that_went_well_is_no_event() -> None:
    assert read('[2025-11-29 16:31:54] INFO:     10.0.0.1:1 - "POST /generate HTTP/1.1" 200 OK').events == ()


def test_a_second_start_in_one_log_is_another_run() -> None:
    first = "server_args=ServerArgs(model_path='a', tp_size=1, max_running_requests=8)"
    second = "server_args=ServerArgs(model_path='a', tp_size=2, max_running_requests=None)"
    run = read(first, "max_total_num_tokens=5, max_running_requests=8, context_len=7", second)
    assert run.server.tp is not None
    assert run.server.tp.value == 2
    assert run.server.max_running is None
    assert run.doubts == ()
    assert run.start is not None
    assert run.start.origin is not None
    assert run.start.origin.line == 3


literals = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**9), 10**9)
    | st.floats(-1e6, 1e6).map(lambda value: round(value, 3))
    | st.text("abc '\"=,()[]{}:", max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("ab_", min_size=1), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(st.dictionaries(st.sampled_from(["model_path", "tp_size", "x", "y"]), literals, min_size=1))
def test_settings_read_back_as_they_were_printed(settings: dict[str, Any]) -> None:
    call = ", ".join(f"{name}={value!r}" for name, value in settings.items())
    assert parse_server_args(f"server_args=ServerArgs({call})") == settings
    assert parse_server_args(f"server_args={settings!r}") == settings


@given(st.text("ab'\"=,()[]{}:<> \\", max_size=40), st.integers(0, len(AS_CALL)))
def test_a_dump_that_breaks_off_never_raises(noise: str, cut: int) -> None:
    parse_repr(noise)
    parse_server_args("server_args=" + AS_CALL[:cut])

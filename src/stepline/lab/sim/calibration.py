"""The numbers that the simulated world takes from real captures (`calibration.toml`, each with its source)."""

import tomllib
from functools import cache
from pathlib import Path

import msgspec


class Calibration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Shares are of the datasheet's figure, times are per step unless the name says otherwise."""

    weight_bandwidth_share: float
    expert_bandwidth_share: float
    kv_bandwidth_share: float
    kv_bytes_s_per_block: float
    """What one thread block of decode attention reads."""
    ms_per_layer: float
    ms_per_expert_layer: float
    ms_per_sequence: float
    host_ms: float
    host_ms_per_sequence: float
    eager_ms_per_layer: float
    """Host time to launch a layer's kernels one by one."""
    prefill_flops_share: float
    prefill_host_ms: float
    prefill_attention_share: float
    prefill_flops_s_per_block: float
    """What one thread block of prefill attention multiplies; a head and 128 new tokens make one."""
    prefill_eager_ms_per_layer: float
    front_in_ms: float
    """From the socket to the scheduler."""
    front_us_per_token: float
    """Front end's serial time for each token that leaves."""
    draft_ms: float
    decode_flops_share: float
    step_jitter: float
    """Standard deviation of one step's factor."""
    hiccup_share: float
    hiccup_ms: float
    """Mean of the rare pauses of the host, exponential."""
    server_spread: float
    """Standard deviation of a whole server's factor."""
    eager_spread: float
    """The same of its host's speed in launching kernels."""

    idle_w: float
    memory_w: float
    """Power at full bandwidth above idle."""
    tensor_w: float
    """Power at the full tensor rate above idle."""
    power_limit_w: float
    sm_clock_mhz: float


@cache
def load_calibration() -> Calibration:
    """The shipped numbers."""
    with Path(__file__).with_name("calibration.toml").open("rb") as file:
        table = tomllib.load(file)
    return msgspec.convert({name: value for name, (value, _) in table.items()}, Calibration)

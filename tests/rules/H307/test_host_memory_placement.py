"""H307: weights cross the link from host memory in every step."""

import pytest

from stepline.findings.outcome import CannotTell, Clear, Fired
from stepline.sources.engines.sglang.settings import facts_from_settings as sglang
from stepline.sources.engines.vllm.settings import facts_from_settings as vllm
from tests.rules.server import Stage, check, diagnosed, level, server


def _run(step_ms: float, gib: float | None):
    """Eight streams; the GPU idles most of the time."""
    stage = Stage(running=8, step_ms=step_ms, lines=9, gpu_busy=0.1)
    facts = {} if gib is None else {"offloaded_gib": gib}
    return server([stage], levels=(level(8, 7900 / step_ms, step_ms, 200.0),), **facts)


def test_it_names_bytes_and_the_least_rate_and_host_bound_yields():
    answer = check("H307", _run(80.0, 4.0))
    assert isinstance(answer, Fired)
    assert answer.status == "suspected"
    assert "4.29 GB" in answer.headline
    assert any("53.7 GB/s or more" in line.text for line in answer.evidence)
    codes = [finding.code for finding in diagnosed(_run(80.0, 4.0)).findings]
    assert codes[0] == "H307"
    assert "H301" not in codes
    assert "H300" not in codes


def test_nearest_rival_an_idle_gpu_without_offloading_is_the_hosts():
    assert [finding.code for finding in diagnosed(_run(80.0, None)).findings][:1] == ["H301"]


@pytest.mark.parametrize(("gib", "kind"), [(0.3, Clear), (0.7, Fired), (0.0, Clear)])
def test_the_least_time_of_the_copy_decides(gib, kind):
    """0.5 GiB take a tenth of 80 ms over PCIe 5.0."""
    assert isinstance(check("H307", _run(80.0, gib)), kind)


def test_cannot_tell_without_the_setting_or_a_step():
    assert isinstance(check("H307", _run(80.0, None)), CannotTell)
    assert isinstance(check("H307", server([], offloaded_gib=4.0)), CannotTell)


@pytest.mark.parametrize(("read", "stated"), [(sglang, 4), (vllm, 4), (vllm, 4.0)])
def test_the_setting_of_the_engine_is_read(read, stated):
    said = read({"cpu_offload_gb": stated}, "server_info.json").offloaded_gib
    assert said is not None
    assert said.value == 4.0

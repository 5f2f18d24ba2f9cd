"""Text of a DCGM exporter, alone and as a live recording keeps it."""

from pathlib import Path

import pytest

from stepline.sources.read import read_one_run as read

LABELS = 'gpu="{gpu}",UUID="GPU-{gpu}",device="nvidia{gpu}",modelName="NVIDIA H200",Hostname="node"{more}'


def scrape(tensor: float, *, gpu: int = 0, more: str = "") -> str:
    """As dcgm-exporter writes a scrape, of a handful of fields."""
    labels = LABELS.format(gpu=gpu, more=more)
    return (
        "# HELP DCGM_FI_DEV_SM_CLOCK SM clock frequency (in MHz).\n"
        "# TYPE DCGM_FI_DEV_SM_CLOCK gauge\n"
        f"DCGM_FI_DEV_SM_CLOCK{{{labels}}} 1980\n"
        "# TYPE DCGM_FI_DEV_GPU_UTIL gauge\n"
        f"DCGM_FI_DEV_GPU_UTIL{{{labels}}} 100\n"
        "# TYPE DCGM_FI_PROF_PIPE_TENSOR_ACTIVE gauge\n"
        f"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{{{labels}}} {tensor}\n"
        "# TYPE DCGM_FI_PROF_GR_ENGINE_ACTIVE gauge\n"
        f"DCGM_FI_PROF_GR_ENGINE_ACTIVE{{{labels}}} 0.97\n"
        "# TYPE DCGM_FI_DEV_CLOCK_THROTTLE_REASONS gauge\n"
        f"DCGM_FI_DEV_CLOCK_THROTTLE_REASONS{{{labels}}} 4\n"
    )


def written(folder: Path, text: str) -> Path:
    (folder / "dcgm.txt").write_text(text)
    return folder


def test_a_scrape_is_a_sample_of_each_gpu(tmp_path: Path) -> None:
    run = read([written(tmp_path, scrape(0.031) + scrape(0.029, gpu=1))])
    assert [(one.gpu, one.tensor_busy) for one in run.gpu_samples] == [(0, 0.031), (1, 0.029)]
    first = run.gpu_samples[0]
    assert (first.graphics_busy, first.sm_clock_mhz, first.clock_event_reasons) == (0.97, 1980.0, 4)
    assert (first.dram_busy, first.power_w) == (None, None), "not exported is not measured"
    assert run.server.gpu is not None
    assert run.server.gpu.value == "NVIDIA H200"
    assert run.metrics == ()


def test_scrapes_of_a_recording_keep_their_times(tmp_path: Path) -> None:
    lines = [line for line in scrape(0.5).splitlines() if not line.startswith("#")]
    text = "".join(f"# scraped at {1_800_000_000 + n}.000\n" + "\n".join(lines) + "\n" for n in range(3))
    run = read([written(tmp_path, text)])
    assert [one.time_s for one in run.gpu_samples] == pytest.approx([1_800_000_000 + n for n in range(3)])


def test_a_part_of_a_gpu_and_a_value_that_is_none_are_left_out(tmp_path: Path) -> None:
    part = scrape(0.9, more=',GPU_I_ID="1",GPU_I_PROFILE="1g.18gb"')
    run = read([written(tmp_path, part + scrape(float("nan"), gpu=1))])
    assert [(one.gpu, one.tensor_busy) for one in run.gpu_samples] == [(1, None)]

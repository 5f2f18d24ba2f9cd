"""Published measurements: listed floors are met, and strict floors prove nobody a liar.

Rows 1 to 25 are of ai-dynamo/aiconfigurator's silicon_sample.csv; the others of the sources named beside
them. Conventions: cache 1 byte an element, the stated type on every product but the head's, live context
0.9 x (ISL + OSL/2), no collectives.
"""

from typing import Any

import pytest

from stepline.facts.catalogue import find_model
from stepline.facts.hardware import find_gpu
from stepline.model.roofline.architecture import Architecture, parse_config
from stepline.model.roofline.decode_floor import decode_floor
from stepline.model.roofline.deployment import Deployment
from stepline.model.roofline.layout import Layout

STATED: dict[str, dict[str, Any] | None] = {
    "fp8": {"quant_method": "fp8"},
    "nvfp4": {"quant_method": "modelopt", "quant_algo": "NVFP4"},
    "bf16": None,
}


def stated(name: str, quantisation: str) -> Architecture:
    config = dict(find_model(name).config)
    if quantisation != "own":
        for part in (config, config.get("text_config", {})):
            part.pop("quantization_config", None)
        section = STATED[quantisation]
        if section:
            config["quantization_config"] = section
    return parse_config(config, name=name)


@pytest.mark.parametrize(
    ("row", "name", "gpu", "quantisation", "tp", "ep", "batch", "lengths", "floor_ms"),
    [
        (1, "llama-3.1-70b", "h200", "fp8", 1, 1, 4, (1024, 1024), 14.89),
        (2, "llama-3.1-70b", "h200", "fp8", 1, 1, 64, (1024, 8192), 24.76),
        (3, "llama-3.1-70b", "h200", "fp8", 4, 1, 4, (1024, 1024), 3.72),
        (4, "llama-3.1-70b", "b200", "nvfp4", 2, 1, 16, (8192, 1024), 3.82),
        (5, "gpt-oss-120b", "b200", "own", 1, 1, 4, (1024, 8192), 1.34),
        (6, "gpt-oss-120b", "b200", "own", 1, 1, 64, (1024, 8192), 7.70),
        (7, "gpt-oss-120b", "h200", "own", 4, 1, 4, (1024, 8192), 0.56),
        (8, "gpt-oss-120b", "h100", "own", 2, 1, 4, (1024, 1024), 1.56),
        (9, "gpt-oss-120b", "h100", "own", 2, 1, 64, (1024, 1024), 8.62),
        (10, "DeepSeek-R1", "h200", "fp8", 8, 8, 4, (1024, 8192), 2.78),
        (11, "DeepSeek-R1", "h200", "fp8", 8, 8, 16, (1024, 8192), 7.93),
        (12, "DeepSeek-R1", "h200", "fp8", 8, 8, 128, (1024, 8192), 21.67),
        (13, "DeepSeek-R1", "b200", "fp8", 8, 1, 4, (1024, 1024), 1.61),
        (14, "DeepSeek-R1", "b200", "nvfp4", 4, 1, 16, (1024, 1024), 5.05),
        (15, "DeepSeek-R1", "h200", "fp8", 8, 1, 64, (1024, 8192), 17.57),
        (16, "Kimi-K2.5", "b300", "nvfp4", 4, 1, 4, (1024, 1024), 1.75),
        (17, "Kimi-K2.5", "b200", "nvfp4", 4, 4, 64, (1024, 8192), 14.78),
        (18, "Kimi-K2.5", "h200", "own", 8, 1, 16, (8192, 1024), 6.05),
        (19, "MiniMax-M2.5", "b300", "nvfp4", 1, 1, 4, (8192, 1024), 2.73),
        (19, "MiniMax-M2.5", "b300", "nvfp4", 1, 1, 64, (8192, 1024), 22.03),
        (20, "MiniMax-M2.5", "b200", "nvfp4", 4, 1, 64, (1024, 1024), 3.87),
        (21, "GLM-5", "h200", "fp8", 8, 1, 4, (1024, 8192), 3.22),
        (21, "GLM-5", "h200", "fp8", 8, 1, 64, (1024, 8192), 19.11),
        (22, "GLM-5", "b200", "fp8", 8, 1, 4, (1024, 8192), 1.93),
        (23, "Qwen3.5-397B-A17B", "b300", "nvfp4", 4, 1, 64, (1024, 1024), 5.91),
        (24, "Qwen3.5-397B-A17B", "b200", "fp8", 4, 1, 128, (1024, 8192), 13.49),
        (25, "Qwen3.5-397B-A17B", "b200", "bf16", 8, 1, 16, (8192, 1024), 3.75),
    ],
)
def test_listed_floors_are_met(
    *,
    row: int,
    name: str,
    gpu: str,
    quantisation: str,
    tp: int,
    ep: int,
    batch: int,
    lengths: tuple[int, int],
    floor_ms: float,
) -> None:
    floor = decode_floor(
        Deployment(stated(name, quantisation), find_gpu(gpu), Layout(tp=tp, ep=ep), kv_dtype="fp8"),
        batch=batch,
        context_tokens=0.9 * (lengths[0] + lengths[1] / 2),
        routing="expected",
        collectives=False,
    )
    assert floor.total_ms == pytest.approx(floor_ms, rel=0.05)


FLASH, FLASH_FP8 = "DeepSeek-V4-Flash", "sgl-project/DeepSeek-V4-Flash-FP8"
AT_8K = 0.9 * (8192 + 512)


@pytest.mark.parametrize(
    ("row", "name", "gpu", "layout", "batch", "drafts", "accepted", "measured_ms"),
    [
        # sglang docs_new deepseek-v4-benchmarks.jsx: EAGLE with 3 drafts, accept length 2.49
        (26, FLASH, "b200", Layout(tp=4), 1, 3, 2.49, 2.88),
        (26, FLASH, "b200", Layout(tp=4), 16, 3, 2.49, 5.44),
        (27, FLASH, "b300", Layout(tp=4), 1, 3, 2.49, 2.85),
        (27, FLASH, "b300", Layout(tp=4), 16, 3, 2.49, 5.41),
        (28, FLASH, "h200", Layout(tp=4), 1, 3, 2.49, 3.37),
        (28, FLASH, "h200", Layout(tp=4), 16, 3, 2.49, 8.42),
        (29, FLASH_FP8, "h200", Layout(tp=4), 1, 3, 2.49, 3.28),
        (29, FLASH_FP8, "h200", Layout(tp=4), 16, 3, 2.49, 8.99),
        (30, FLASH, "h100", Layout(tp=8), 1, 3, 2.49, 3.22),
        (30, FLASH, "h100", Layout(tp=8), 16, 3, 2.49, 6.76),
        (33, FLASH, "h20-3e", Layout(tp=8, ep=8), 1, 5, 3.61, 1000 / 262.7),  # vllm#45350
        (34, FLASH, "rtx pro 6000 max-q", Layout(tp=2), 1, 0, 1.0, 26.5),  # vllm#40852
        (34, FLASH, "rtx pro 6000 max-q", Layout(tp=2), 10, 0, 1.0, 81.2),
        (36, FLASH, "rtx pro 6000", Layout(tp=8), 1, 0, 1.0, 92.3),  # sglang#24047
        (37, FLASH, "rtx pro 6000", Layout(pp=2), 1, 0, 1.0, 1000 / 35.7),  # loftllc.dev
        (38, FLASH, "gb10", Layout(tp=2), 1, 2, 2.17, 1000 / 38.5),  # elsung/dgx-spark-deepseek-v4-flash
        # local-inference-lab/rtx6kpro
        (41, "Qwen3.5-397B-A17B", "rtx pro 6000", Layout(tp=4), 1, 0, 1.0, 1000 / 108),
        (42, "MiniMax-M2.5", "rtx pro 6000", Layout(tp=2), 1, 0, 1.0, 1000 / 145),
        (42, "MiniMax-M2.5/fp8", "rtx pro 6000", Layout(tp=8), 1, 0, 1.0, 1000 / 70),
        (43, "GLM-5", "rtx pro 6000", Layout(tp=8), 1, 0, 1.0, 1000 / 52),
        (43, "Kimi-K2.5/own", "rtx pro 6000", Layout(tp=8), 1, 0, 1.0, 1000 / 70),
    ],
)
def test_strict_floors_stay_below_measurements(
    *,
    row: int,
    name: str,
    gpu: str,
    layout: Layout,
    batch: int,
    drafts: int,
    accepted: float,
    measured_ms: float,
) -> None:
    base, _, quantisation = name.partition("/") if "/" in name and name != FLASH_FP8 else (name, "", "nvfp4")
    model = stated(base, "own" if "V4" in name else quantisation)
    context = 182_000 if row == 33 else AT_8K
    floor = decode_floor(
        Deployment(model, find_gpu(gpu), layout),
        batch=batch,
        context_tokens=context,
        draft_tokens=drafts,
        accept_length=accepted,
    )
    assert floor.ms_per_token < measured_ms


def test_leaving_speculation_out_makes_a_false_floor() -> None:
    # 42 to 44 tok/s on two DGX Sparks: impossible without drafts, fine with two of them.
    flash, gb10 = stated(FLASH, "own"), find_gpu("gb10")
    plain = decode_floor(Deployment(flash, gb10, Layout(tp=2)), batch=1, context_tokens=8192)
    drafted = decode_floor(
        Deployment(flash, gb10, Layout(tp=2)),
        batch=1,
        context_tokens=8192,
        draft_tokens=2,
        accept_length=2.17,
    )
    assert plain.ms_per_token > 1000 / 44
    assert drafted.ms_per_token < 1000 / 44

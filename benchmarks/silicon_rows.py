"""The public table of measured TTFT and TPOT, as rows a floor can be set against.

The table is silicon_sample.csv of the package aiconfigurator-core 0.12.0 (ai-dynamo/aiconfigurator; dumps of
InferenceX, 2026-03 and 04). It is read from the wheel; nothing of it is kept here. The same run stands in
several dumps: rows equal in model family, system, engine, quantisation, layout, batch, lengths and TPOT to
0.01 ms are one row.
"""

import csv
import io
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from stepline.facts.catalogue import find_model
from stepline.facts.hardware import Gpu, find_gpu
from stepline.model.architecture import Architecture, parse_config
from stepline.model.layout import Layout

TABLE = "aiconfigurator_core/systems/silicon_sample.csv"

MODELS = {
    "meta-llama/Llama-3.1-70B": "meta-llama/Llama-3.1-70B",
    "MiniMaxAI/MiniMax-M2.5": "MiniMaxAI/MiniMax-M2.5",
    "deepseek-ai/DeepSeek-V3": "deepseek-ai/DeepSeek-R1",  # the table relabels R1 rows so
    "deepseek-ai/DeepSeek-R1": "deepseek-ai/DeepSeek-R1",
    "openai/gpt-oss-120b": "openai/gpt-oss-120b",
    "Qwen/Qwen3.5-397B-A17B": "Qwen/Qwen3.5-397B-A17B",
    "moonshotai/Kimi-K2.5": "moonshotai/Kimi-K2.5",
    "zhipuai/GLM-5": "zai-org/GLM-5",
    "nvidia/Qwen3-32B-NVFP4": "Qwen/Qwen3-32B",
    "Qwen/Qwen3-32B": "Qwen/Qwen3-32B",
}

OWN_STORAGE = frozenset({"openai/gpt-oss-120b", "moonshotai/Kimi-K2.5/int4_wo"})
"""Checkpoints that are published quantised in a way the stated type does not describe: taken as published."""

STATED = {
    "nvfp4": {"quant_method": "modelopt", "quant_algo": "NVFP4"},
    "fp8": {"quant_method": "fp8"},
    "fp8_block": {"quant_method": "fp8", "weight_block_size": [128, 128]},
    "": None,
}


class Row(NamedTuple):
    """One measured cell."""

    id: str
    family: str
    gpu: Gpu
    engine: str
    mode: str
    layout: Layout
    listed_batch: float
    """Sequences of one attention rank, from client concurrency."""
    isl: int
    osl: int
    ttft_ms: float
    tpot_ms: float
    quantisation: str

    @property
    def context_tokens(self) -> float:
        """Mean live context: the prompt and half the answer, times 0.9 for lengths drawn from 80 to 100 %."""
        return 0.9 * (self.isl + self.osl / 2)

    @property
    def architecture(self) -> Architecture:
        """The model in the stated quantisation, every matrix product but the head's in it."""
        return _architecture(self.family, self.quantisation)


def read(wheel: Path, ids: Iterable[str] | None = None) -> list[Row]:
    """Return the table's distinct rows, or those of the given ids."""
    with zipfile.ZipFile(wheel) as archive, archive.open(TABLE) as table:
        raw = list(csv.DictReader(io.TextIOWrapper(table)))
    wanted = None if ids is None else set(ids)
    rows, seen = [], set()
    for line in raw:
        if wanted is not None and line["id"] not in wanted:
            continue
        row = _row(line)
        key = row._replace(id="", ttft_ms=0.0, tpot_ms=round(row.tpot_ms, 2), gpu=row.gpu.name)  # type: ignore[arg-type]
        if wanted is None:
            if key in seen:
                continue
            seen.add(key)
        rows.append(row)
    return rows


def _row(line: Mapping[str, str]) -> Row:
    prefix = "decode_" if line["mode"] == "disagg" else ""
    tp, dp = int(line[f"{prefix}tp_size"]), int(line[f"{prefix}attention_dp_size"])
    ep = int(line[f"{prefix}moe_ep_size"] or 1)
    layout = Layout(tp=tp * dp, dp=dp, dp_attention=dp > 1, ep=ep, pp=int(line[f"{prefix}pp_size"] or 1))
    return Row(
        id=line["id"],
        family=MODELS[line["model_path"]],
        gpu=find_gpu(line["system"].removesuffix("_sxm")),
        engine=line["backend"],
        mode=line["mode"],
        layout=layout,
        listed_batch=float(line[f"{prefix}batch_size"]),
        isl=int(line["isl"]),
        osl=int(line["osl"]),
        ttft_ms=float(line["silicon_ttft_ms"] or "nan"),
        tpot_ms=float(line["silicon_tpot_ms"]),
        quantisation=line["gemm_quant_mode"],
    )


_PARSED: dict[tuple[str, str], Architecture] = {}


def _architecture(family: str, quantisation: str) -> Architecture:
    key = (family, quantisation)
    if key not in _PARSED:
        config = dict(find_model(family).config)
        if not {family, f"{family}/{quantisation}"} & OWN_STORAGE:
            config = _without_quantisation(config)
            stated = STATED[quantisation]
            if stated is not None:
                config["quantization_config"] = stated
        parsed = parse_config(config, name=family)
        _PARSED[key] = msgspec.structs.replace(parsed, kv_dtype="fp8")
    return _PARSED[key]


def _without_quantisation(config: dict[str, object]) -> dict[str, object]:
    kept = {key: value for key, value in config.items() if key != "quantization_config"}
    return {k: _without_quantisation(v) if isinstance(v, dict) else v for k, v in kept.items()}

"""The public table of measured TTFT and TPOT, as rows a floor can be set against.

The table is silicon_sample.csv of the package aiconfigurator-core 0.12.0 (ai-dynamo/aiconfigurator; dumps of
InferenceX, 2026-03 and 04). It is read from the wheel; nothing of it is kept here. The same run stands in
several dumps: rows equal in model family, system, engine, quantisation, layout, batch, lengths and TPOT to
0.01 ms are one row.
"""

import csv
import io
import math
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from stepline.errors import UnknownFact
from stepline.facts.catalogue import find_model
from stepline.facts.hardware import Gpu, find_gpu
from stepline.model.roofline.architecture import Architecture, parse_config
from stepline.model.roofline.deployment import Deployment
from stepline.model.roofline.kv_capacity import capacity_sequences
from stepline.model.roofline.layout import Layout

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
    def cell(self) -> tuple[object, ...]:
        """What was set, without what was measured: repeated runs of a cell share it."""
        where = (self.family, self.gpu.name, self.engine, self.mode, self.layout, self.quantisation)
        return (*where, self.listed_batch, self.isl, self.osl)

    @property
    def architecture(self) -> Architecture:
        """The model in the stated quantisation, every matrix product but the head's in it."""
        return _architecture(self.family, self.quantisation)


class Judged(NamedTuple):
    """What a row's metadata allow: a running batch, or the reason it is refused."""

    batch: float
    reason: str
    """Why the batch is not the listed one, or why the row is refused; empty for an untouched row."""
    refused: bool = False


def judge(row: Row) -> Judged:
    """Return the largest mean running batch the row's own figures allow; no rule knows a cell's name.

    Three things make a listed concurrency no running batch: an impossible layout, KV capacity, and queueing.
    A closed-loop client's stream decodes only OSL x TPOT of every TTFT + OSL x TPOT, so on average no more
    than that share of its streams can be in the decode batch (Little's law). Disaggregated rows list the
    decode workers' own batch and are not scaled.
    """
    if row.mode == "agg" and row.layout.tp > 8 and not row.layout.dp_attention:
        return Judged(0, f"tp={row.layout.tp} without attention data parallelism on hosts of 8", refused=True)
    try:
        room = capacity_sequences(
            Deployment(row.architecture, row.gpu, row.layout), context_tokens=row.context_tokens
        )
    except UnknownFact as error:
        return Judged(0, str(error), refused=True)
    if room < 1:
        return Judged(0, "weights leave no room for one sequence", refused=True)
    batch, reason = row.listed_batch, ""
    if row.mode == "agg" and math.isfinite(row.ttft_ms):
        decode_ms = 0.9 * row.osl * row.tpot_ms
        batch = max(1.0, batch * decode_ms / (decode_ms + row.ttft_ms))
        reason = "waits for the first token" if batch < 0.9 * row.listed_batch else ""
    if room < batch:
        batch, reason = room, "KV capacity"
    return Judged(batch, reason)


def read(wheel: Path, ids: Iterable[str] | None = None) -> list[Row]:
    """Return the rows of the given ids, or every distinct row with a layout and a TPOT."""
    with zipfile.ZipFile(wheel) as archive, archive.open(TABLE) as table:
        lines = list(csv.DictReader(io.TextIOWrapper(table)))
    wanted = None if ids is None else set(ids)
    rows: dict[tuple[object, ...], Row] = {}
    for line in lines:
        if wanted is not None and line["id"] not in wanted:
            continue
        prefix = "decode_" if line["mode"] == "disagg" else ""
        if line[f"{prefix}tp_size"] and line[f"{prefix}batch_size"] and line["model_path"] in MODELS:
            row = _row(line, prefix)
            rows.setdefault((*row.cell, round(row.tpot_ms, 2)) if wanted is None else (row.id,), row)
    return list(rows.values())


def _row(line: Mapping[str, str], prefix: str) -> Row:
    tp, dp = int(line[f"{prefix}tp_size"]), int(line[f"{prefix}attention_dp_size"] or 1)
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

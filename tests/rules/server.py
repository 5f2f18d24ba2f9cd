"""Builds the evidence of a server for rule tests, so that each test states only what it is about."""

from collections.abc import Sequence

import msgspec

from stepline.evidence.gpu import GpuSample
from stepline.evidence.load import LoadLevel
from stepline.evidence.metrics import EngineMetrics
from stepline.evidence.origin import Origin, Sourced
from stepline.evidence.run import Run
from stepline.evidence.scheduler import DecodeReport
from stepline.evidence.server import ServerFacts
from stepline.findings.diagnose import diagnose
from stepline.findings.diagnosis import RunDiagnosis
from stepline.findings.outcome import Outcome
from stepline.findings.registry import find_rule
from stepline.model.picture.assess import assess
from stepline.model.picture.picture import Picture, Setup

LOG = "server.log"
LLAMA_8B = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}


class Stage(msgspec.Struct, kw_only=True):
    """A stretch of steady decoding."""

    running: int
    step_ms: float
    queued: int | None = 0
    graph: bool | None = True
    lines: int = 5
    pool_usage: float | None = 0.01
    context: int = 320
    gpu_busy: float | None = None


def server(
    stages: Sequence[Stage],
    *,
    levels: Sequence[LoadLevel] = (),
    metrics: EngineMetrics | None = None,
    model: dict[str, object] | None = LLAMA_8B,
    **facts: object,
) -> Run:
    """A run whose log shows the stages one after another, ten seconds each."""
    decodes, samples, seq = [], [], 0
    for index, stage in enumerate(stages):
        for line in range(stage.lines):
            seq += 1
            decodes.append(
                DecodeReport(
                    seq=seq,
                    origin=Origin(LOG, seq),
                    time_s=10.0 * index + line,
                    running=stage.running,
                    queued=stage.queued,
                    pool_tokens=stage.running * stage.context,
                    pool_usage=stage.pool_usage,
                    graph=stage.graph,
                    tok_s=1000 * stage.running / stage.step_ms,
                )
            )
        if stage.gpu_busy is not None:
            samples += [
                GpuSample(
                    origin=Origin("gpm.csv", 2 + tick),
                    time_s=10.0 * index + 1.0 + tick / 4,
                    graphics_busy=stage.gpu_busy,
                    tensor_busy=0.02,
                    dram_busy=0.6,
                )
                for tick in range(4 * (stage.lines - 2) + 1)
            ]
    known = {name: Sourced(value, Origin("server_info.json", None, name)) for name, value in facts.items()}
    return Run(
        decodes=tuple(decodes),
        gpu_samples=tuple(samples),
        levels=tuple(levels),
        metrics=() if metrics is None else (metrics,),
        server=ServerFacts(**known),
        model_config=None if model is None else Sourced(model, Origin("config.json")),
    )


def level(concurrency: int, tok_s: float, tpot_ms: float, ttft_ms: float) -> LoadLevel:
    """A client level of 256 prompt and 128 output tokens."""
    return LoadLevel(
        origin=Origin("sweep.json"),
        concurrency=concurrency,
        tok_s=tok_s,
        tpot_ms=tpot_ms,
        ttft_ms=ttft_ms,
        input_tokens=256,
        output_tokens=128,
    )


def picture(run: Run, *, gpu: str | None = "h200", **setup: object) -> Picture:
    """The picture of a run on an H200."""
    return assess(run, Setup(gpu=gpu, **setup))


def check(code: str, run: Run, *, gpu: str | None = "h200", **setup: object) -> Outcome:
    """What one rule answers."""
    return find_rule(code).check(picture(run, gpu=gpu, **setup))


def diagnosed(run: Run, *, gpu: str | None = "h200", **setup: object) -> RunDiagnosis:
    """The whole diagnosis."""
    return diagnose(picture(run, gpu=gpu, **setup))

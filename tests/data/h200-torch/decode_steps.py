"""The program that made these captures, written out for reading; in this form it has not been run.

`python decode_steps.py FOLDER` on a machine with two GPUs and torch 2.11 writes NAME-rR.json.gz (the trace of rank R)
and NAME-rR.txt (milliseconds of a step without the profiler).
"""

import os
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symmetric
import torch.multiprocessing as mp
import torch.nn.functional as F  # noqa: N812  # as everybody writes it
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.profiler import profile, record_function

HIDDEN, INNER, HEADS, KEY_HEADS, WIDTH, CONTEXT = 8192, 28672, 64, 8, 128, 1024


class Case(NamedTuple):
    name: str
    ranks: int
    batch: int
    layers: int
    dtype: str = "bfloat16"
    attention: str = "FLASH_ATTENTION"
    one_shot: bool = False
    graph: bool = True
    more_work: int = 0
    """Further passes of the feed-forward layers on rank 1."""


CASES = (
    Case("allreduce_one_shot", 2, 4, 8, one_shot=True),
    Case("allreduce_nccl", 2, 4, 8),
    Case("allreduce_without_p2p", 2, 16, 8),
    Case("allreduce_over_sockets", 2, 4, 8),
    Case("rank_on_a_shared_gpu", 2, 4, 8),
    Case("rank_with_more_work", 2, 4, 8, more_work=1),
    Case("weights_bf16", 1, 4, 6),
    Case("weights_fp32", 1, 4, 6, dtype="float32", attention="EFFICIENT_ATTENTION"),
    Case("attention_unfused", 1, 4, 6, attention="MATH", graph=False),
    Case("attention_fused", 1, 4, 6, graph=False),
    Case("attention_unfused_graph", 1, 4, 6, attention="MATH"),
)


def share_gpu() -> None:
    """Keep the second GPU busy for ever."""
    torch.cuda.set_device(1)
    a = torch.randn(4096, 4096, device="cuda")
    while True:
        for _ in range(20):
            a @ a
        torch.cuda.synchronize()


def run(rank: int, case: Case, folder: str) -> None:
    torch.cuda.set_device(rank)
    dtype, ranks, batch = getattr(torch, case.dtype), case.ranks, case.batch
    heads, key_heads = HEADS // ranks, KEY_HEADS // ranks
    if case.dtype == "float32":
        key_heads = heads  # the memory-efficient kernel shares no keys
    if ranks > 1:
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(29500 + os.getppid() % 999))
        device = torch.device("cuda", rank)
        dist.init_process_group("nccl", rank=rank, world_size=ranks, device_id=device)

    def made(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, device="cuda", dtype=dtype) * 0.01

    layers = [
        (
            made((heads + 2 * key_heads) * WIDTH, HIDDEN),
            made(HIDDEN, heads * WIDTH),
            made(2 * INNER // ranks, HIDDEN),
            made(HIDDEN, INNER // ranks),
            made(batch, key_heads, CONTEXT, WIDTH),
            made(batch, key_heads, CONTEXT, WIDTH),
        )
        for _ in range(case.layers)
    ]
    scale, start = torch.ones(HIDDEN, device="cuda", dtype=dtype), made(batch, HIDDEN)
    shared: Any = None
    if case.one_shot:
        shared = symmetric.empty(batch, HIDDEN, dtype=dtype, device="cuda")
        symmetric.rendezvous(shared, dist.group.WORLD.group_name)

    def reduced(part: torch.Tensor) -> torch.Tensor:
        if ranks == 1:
            return part
        if case.one_shot:
            shared.copy_(part)
            return torch.ops.symm_mem.one_shot_all_reduce(shared, "sum", dist.group.WORLD.group_name)
        dist.all_reduce(part)
        return part

    def forward() -> torch.Tensor:
        state = start
        for qkv, out, up, down, keys, values in layers:
            query = F.linear(F.rms_norm(state, (HIDDEN,), scale), qkv)[:, : heads * WIDTH]
            query = query.view(batch, heads, 1, WIDTH)
            with sdpa_kernel(getattr(SDPBackend, case.attention)):
                seen = F.scaled_dot_product_attention(query, keys, values, enable_gqa=key_heads < heads)
            state = state + reduced(F.linear(seen.reshape(batch, heads * WIDTH), out))
            normed = F.rms_norm(state, (HIDDEN,), scale)
            for _ in range(1 + case.more_work * rank):
                both = F.linear(normed, up)
                part = F.linear(F.silu(both[:, : INNER // ranks]) * both[:, INNER // ranks :], down)
            state = state + reduced(part)
        return state

    for _ in range(3):
        forward()
    torch.cuda.synchronize()
    graph = None
    if case.graph:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            forward()

    def step() -> None:
        with record_function(f"step[DECODE bs={batch}]"):
            forward() if graph is None else graph.replay()
        torch.cuda.synchronize()

    took_ms = 0.0
    for steps in (20, 60):
        if ranks > 1:
            dist.barrier()
        torch.cuda.synchronize()
        begin = time.time()
        for _ in range(steps):
            step()
        took_ms = (time.time() - begin) / steps * 1e3
    if ranks > 1:
        dist.barrier()
    with profile(record_shapes=True) as trace:
        for _ in range(8):
            step()
    trace.export_chrome_trace(f"{folder}/{case.name}-r{rank}.json.gz")
    Path(f"{folder}/{case.name}-r{rank}.txt").write_text(f"{took_ms}\n")


if __name__ == "__main__":
    mp.set_start_method("spawn")
    for case in CASES:
        off = case.name in ("allreduce_without_p2p", "allreduce_over_sockets")
        os.environ["NCCL_P2P_DISABLE"] = "1" if off else "0"
        os.environ["NCCL_SHM_DISABLE"] = "1" if case.name == "allreduce_over_sockets" else "0"
        other = mp.Process(target=share_gpu, daemon=True)
        if case.name == "rank_on_a_shared_gpu":
            other.start()
        mp.spawn(run, (case, sys.argv[1]), case.ranks)
        if other.is_alive():
            other.kill()

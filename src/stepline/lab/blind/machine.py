"""Changes of the machine: fewer cores for the engine, or another program on its CPUs, memory, GPU or link."""

import random

from stepline.lab.blind.change import Change

_PYTHON = "import subprocess, sys, time, os\n"
_EVERY_CORE = (
    _PYTHON
    + "import multiprocessing as m\n"
    + "def work():\n    while True: {loop}\n"
    + "if __name__ == '__main__':\n"
    + "    for _ in range({times} * os.cpu_count()): m.Process(target=work, daemon=True).start()\n"
    + "    print('on', flush=True); time.sleep(600)\n"
)
_ON_GPU = (
    "import torch, time\n{setup}\n{step}\ntorch.cuda.synchronize()\nprint('on', flush=True)\n"
    "end = time.time() + 600\n"
    "while time.time() < end:\n    {step}\n    torch.cuda.synchronize()\n"
)
NEIGHBOURS = {
    "cpu-loops": _EVERY_CORE.format(loop="sum(i * i for i in range(10000))", times=1),
    "cpu-loops-3": _EVERY_CORE.format(loop="sum(i * i for i in range(10000))", times=3),
    "memory-copies": _EVERY_CORE.format(loop="bytes(bytearray(1 << 26))", times=1),
    "gpu-products": _ON_GPU.format(
        setup="a = torch.randn(4096, 4096, device='cuda', dtype=torch.bfloat16)", step="b = a @ a"
    ),
    "gpu-copies": _ON_GPU.format(
        setup="a = torch.empty(1 << 30, device='cuda', dtype=torch.uint8); b = torch.empty_like(a)",
        step="b.copy_(a)",
    ),
    "pcie-copies": _ON_GPU.format(
        setup="a = torch.empty(1 << 28, dtype=torch.uint8).pin_memory()\n"
        "b = torch.empty_like(a, device='cuda')",
        step="b.copy_(a, non_blocking=True)",
    ),
}
"""Programs, each in a process of its own; one prints a line once it works. Those of the GPU need torch there."""
CORES = (1, 2, 3, 4, 6)


def changes(*, gpu: bool) -> list[Change]:
    """All states of the machine that can be drawn; `gpu` when the server runs on one."""
    names = [name for name in NEIGHBOURS if gpu or not name.startswith(("gpu", "pcie"))]
    return [
        *(Change(kind="machine", name="cores", value=str(cores)) for cores in CORES),
        *(Change(kind="machine", name="neighbour", value=name) for name in names),
    ]


def change(draw: random.Random, *, gpu: bool) -> Change:
    """One of them."""
    return draw.choice(changes(gpu=gpu))

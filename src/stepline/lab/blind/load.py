"""Changes of the load: lengths, sharing, sampling, and other requests beside it."""

import random

from stepline.lab.blind.change import Beside, Change, Server

INPUT_TOKENS = (16, 64, 1024, 2048, 8192)
OUTPUT_TOKENS = (8, 32, 64, 512)
SHARED = (0.5, 0.9)
"""Share of each prompt that all have in common."""
SAMPLING: dict[str, tuple[int | float | bool, ...]] = {
    "temperature": (0.7, 1.0),
    "top_p": (0.5, 0.95),
    "top_k": (1, 50),
    "min_p": (0.05,),
    "frequency_penalty": (0.5,),
    "presence_penalty": (0.5,),
    "repetition_penalty": (1.1,),
}
"""Options that both engines take by these names (SGLang 0.5.16 sampling_params.py, vLLM 0.24.0 sampling_params.py)."""
BESIDE = (
    Beside(every_s=1.0, input_tokens=8000, output_tokens=4),
    Beside(every_s=0.2, input_tokens=2000, output_tokens=4),
    Beside(every_s=0.1, input_tokens=64, output_tokens=64),
    Beside(every_s=0.5, input_tokens=256, output_tokens=512),
)


def length(draw: random.Random, twin: Server) -> Change:
    """Other prompts or answers than the twin's, or an opening that all prompts share."""
    match draw.choice(("input-tokens", "output-tokens", "shared-prefix")):
        case "input-tokens":
            return Change(kind="load", name="input-tokens", value=str(draw.choice(INPUT_TOKENS)))
        case "output-tokens":
            return Change(kind="load", name="output-tokens", value=str(draw.choice(OUTPUT_TOKENS)))
        case _:
            return Change(
                kind="load", name="shared-prefix", value=str(int(twin.input_tokens * draw.choice(SHARED)))
            )


def change(draw: random.Random) -> Change:
    """A sampling option of every request, or other requests beside the load."""
    if draw.randrange(2):
        name = draw.choice(sorted(SAMPLING))
        return Change(kind="load", name=name, value=str(draw.choice(SAMPLING[name])))
    return Change(kind="load", name="beside", value=str(draw.randrange(len(BESIDE))))

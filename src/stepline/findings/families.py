"""The families of causes, which the letter of a code names, and what may be said of all their rules."""

from typing import Literal

Family = Literal["measurement", "scheduling", "host", "kernels", "communication", "power"]

FAMILIES: dict[str, Family] = {
    "L": "measurement",
    "S": "scheduling",
    "H": "host",
    "K": "kernels",
    "C": "communication",
    "P": "power",
}


def family(code: str) -> Family:
    """The family of a rule's code."""
    return FAMILIES[code[0]]


def inside_step(code: str) -> bool:
    """True of causes inside the decode step, which a short trace can show."""
    return family(code) in ("host", "kernels", "communication")

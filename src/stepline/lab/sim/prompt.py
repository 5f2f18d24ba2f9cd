"""Prompts and requests of the simulated engine; text is cut into pretended tokens, none is understood."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

BLOCK = 16
"""Tokens per unit of the prefix cache."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """`tokens` long; `blocks` are chained hashes of its whole blocks, equal only where all before is equal."""

    tokens: int
    blocks: tuple[int, ...]


def from_ids(ids: Sequence[int]) -> Prompt:
    """The prompt of a list of token ids."""
    chain, blocks = 0, []
    for start in range(0, len(ids) - BLOCK + 1, BLOCK):
        chain = hash((chain, *ids[start : start + BLOCK]))
        blocks.append(chain)
    return Prompt(max(1, len(ids)), tuple(blocks))


def from_text(text: str) -> Prompt:
    """The prompt of a text: four bytes to a token, since there is no tokenizer."""
    data = text.encode()
    return from_ids([hash(data[i : i + 4]) for i in range(0, len(data), 4)])


@dataclass(slots=True, eq=False)
class Request:
    """One request on its way through the engine; times are seconds of the engine's clock."""

    rid: str
    prompt: Prompt
    max_new: int
    arrival_s: float
    made: int = 0
    """Tokens generated so far."""
    held: int = 0
    """Tokens of it in the KV pool."""
    cached: int = 0
    """Prompt tokens that the prefix cache gave at first admission."""
    admitted_s: float | None = None
    first_s: float | None = None
    last_s: float | None = None
    steps: int = 0
    retractions: int = 0
    owner: "OnTokens | None" = field(default=None, repr=False)
    """Called when tokens of it leave; None once nobody waits for them."""

    @property
    def wanted(self) -> int:
        """Tokens that must be in the pool before it can decode."""
        return self.prompt.tokens + self.made

    @property
    def done(self) -> bool:
        """All its tokens are made."""
        return self.made >= self.max_new


OnTokens = Callable[[Request, int, float, int, bool], None]
"""request, new tokens, when they left (seconds of the engine's clock), tokens so far, whether these were the last."""

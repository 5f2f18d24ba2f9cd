"""The prefix cache: blocks of finished prompts, kept while the pool has room for them, oldest out first."""

from collections import OrderedDict

from stepline.lab.sim.prompt import BLOCK, Prompt


class PrefixCache:
    """Blocks that a later prompt can reuse; `enabled` False keeps none."""

    def __init__(self, *, enabled: bool) -> None:
        self._enabled = enabled
        self._blocks: OrderedDict[int, None] = OrderedDict()
        self.evicted_tokens = 0

    @property
    def tokens(self) -> int:
        """Tokens kept."""
        return len(self._blocks) * BLOCK

    def match(self, prompt: Prompt) -> int:
        """Leading tokens of `prompt` that are kept; at least one token is always left to compute."""
        found = 0
        for block in prompt.blocks:
            if block not in self._blocks:
                break
            self._blocks.move_to_end(block)
            found += BLOCK
        return min(found, (prompt.tokens - 1) // BLOCK * BLOCK)

    def keep(self, prompt: Prompt) -> None:
        """Add the blocks of a computed prompt."""
        if self._enabled:
            for block in prompt.blocks:
                self._blocks[block] = None
                self._blocks.move_to_end(block)

    def shrink(self, tokens: int) -> None:
        """Drop the oldest blocks until at most `tokens` are kept."""
        while self.tokens > max(0, tokens):
            self._blocks.popitem(last=False)
            self.evicted_tokens += BLOCK

    def clear(self) -> None:
        """Forget everything."""
        self._blocks.clear()

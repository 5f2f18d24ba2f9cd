"""How a model is spread over GPUs, and which spreads are impossible."""

import msgspec

from stepline.errors import UnknownFact
from stepline.model.roofline.architecture_parts import Architecture


class Layout(msgspec.Struct, frozen=True, kw_only=True):
    """Parallel layout of one server.

    `tp` GPUs hold one copy of the experts and dense layers. With `dp_attention` the same GPUs form `dp`
    ranks that each run attention for sequences of their own over tp/dp GPUs; without it `dp` counts
    independent copies of the whole server. `ep` of the `tp` GPUs hold whole experts, the rest of the split
    cuts each expert. `pp` stages follow each other.
    """

    tp: int = 1
    ep: int = 1
    dp: int = 1
    pp: int = 1
    dp_attention: bool = False

    @property
    def attention_tp(self) -> int:
        """GPUs that share the attention of one sequence."""
        return self.tp // self.dp if self.dp_attention else self.tp

    @property
    def ranks(self) -> int:
        """Data-parallel ranks whose sequences meet in the same experts."""
        return self.dp if self.dp_attention else 1

    @property
    def gpus(self) -> int:
        """GPUs of the whole server."""
        return self.tp * self.pp * (1 if self.dp_attention else self.dp)


def check_layout(architecture: Architecture, layout: Layout) -> None:
    """Refuse a layout the model cannot have.

    Raises:
        UnknownFact: A degree below 1, heads or experts that do not divide, or more stages than layers.
    """
    name, tp = architecture.name, layout.attention_tp
    for degree in ("tp", "ep", "dp", "pp"):
        if getattr(layout, degree) < 1:
            raise UnknownFact(f"{degree} is {getattr(layout, degree)}; a parallel degree is 1 or more")
    if layout.dp_attention and layout.tp % layout.dp:
        raise UnknownFact(f"attention over dp={layout.dp} ranks needs tp={layout.tp} to be a multiple of it")
    if architecture.heads % tp:
        near = [n for n in range(1, architecture.heads + 1) if architecture.heads % n == 0]
        best = sorted(near, key=lambda n: abs(n - tp))[:3]
        raise UnknownFact(
            f"{name} has {architecture.heads} query heads, which tp={tp} does not divide; "
            f"nearest possible: {', '.join(map(str, sorted(best)))}"
        )
    for kv_heads in {cache.shards for cache in architecture.body.caches} - {1}:
        if kv_heads % tp and tp % kv_heads:
            raise UnknownFact(
                f"{name} has {kv_heads} KV heads, which tp={tp} neither divides nor repeats evenly"
            )
    if layout.tp % layout.ep:
        raise UnknownFact(f"ep={layout.ep} does not divide tp={layout.tp}")
    counts = {experts.count for experts in architecture.body.experts}
    if layout.ep > 1 and not counts:
        raise UnknownFact(f"{name} has no experts to spread over ep={layout.ep}")
    for count in counts:
        if layout.ep > count:
            raise UnknownFact(f"{name} has {count} experts, fewer than ep={layout.ep}")
    if layout.pp > architecture.layers:
        raise UnknownFact(f"{name} has {architecture.layers} layers, fewer than pp={layout.pp} stages")

"""What rules know of each other, in one table: whose answer goes first, and which causes look alike.

Rules stay independent modules: each judges by the picture alone and names the others in its text. This table says the
same as data, `stepline explain CODE` prints it, and a test holds the two together and finds circles.
"""

from typing import Literal

import msgspec

Kind = Literal["yields to", "rival of", "outranks", "ranks after"]


class Relation(msgspec.Struct, frozen=True):
    """One rule beside another; a single letter stands for all rules of that family.

    `yields to`: clear, or left open, where the other cause is seen, since that accounts for the same time.
    `rival of`: fits some of the same evidence, until it is ruled out or a further measurement decides.
    `outranks` and `ranks after`: where both are found.
    """

    code: str
    kind: Kind
    other: str
    reason: str


ALL = "all"
RELATIONS = (
    Relation("L", "outranks", ALL, "a measurement known to be at fault: the other numbers rest on it"),
    Relation("L105", "ranks after", ALL, "a damaged trace has already been set aside, so no finding relies on it"),
    Relation("L103", "rival of", "S204", "short answers and slow prefill both leave little time to decode steps"),
    Relation("L104", "rival of", "L102", "a second run is faster warm, and faster with its prompts cached"),
    Relation("L105", "rival of", "H301", "a damaged trace shows idle time that was not there"),
    Relation("L106", "yields to", "S201", "a cap is why requests queue"),
    Relation("L106", "yields to", "S202", "the KV pool is why requests queue"),
    Relation("S200", "rival of", "S204", "prompts are slow, or something else lies beside decode steps"),
    Relation("S200", "rival of", "S201", "requests wait for a place in the batch"),
    Relation("S201", "yields to", "S202", "a full KV pool limits the batch below any cap"),
    Relation("S202", "yields to", "S203", "a pool that retracts running requests costs more than its size"),
    Relation("S202", "rival of", "S201", "both keep requests waiting"),
    Relation("S203", "rival of", "S202", "few retractions cost little: then the pool's size is what costs"),
    Relation("S203", "rival of", "S201", "both keep the batch small"),
    Relation("S203", "rival of", "S204", "retracted prompts are prefilled again"),
    Relation("S203", "rival of", "K403", "both lengthen the time per token as the batch grows"),
    Relation("S204", "yields to", "H301", "the GPU idles beside decode steps: no prefill work"),
    Relation("S204", "yields to", "H302", "the GPU idles beside decode steps: eager launches"),
    Relation("S204", "yields to", "S203", "the excess is prefill of retracted requests"),
    Relation("S204", "yields to", "C501", "a slow exchange lengthens prefill by an unknown amount"),
    Relation("S204", "yields to", "C502", "a late rank lengthens prefill by an unknown amount"),
    Relation("S204", "yields to", "K405", "products in 32 bits lengthen prefill by an unknown amount"),
    Relation("S204", "rival of", "S201", "requests wait below the load either way"),
    Relation("S204", "rival of", "S202", "requests wait below the load either way"),
    Relation("S205", "rival of", "H301", "drafts are made by the host or by the GPU"),
    Relation("S206", "yields to", "S201", "a cap is why requests wait"),
    Relation("S206", "yields to", "S202", "the KV pool is why requests wait"),
    Relation("S206", "rival of", "S204", "requests wait while prefill runs all the time"),
    Relation("H300", "rival of", "H302", "launches are a part of the host's time"),
    Relation("H300", "rival of", "H301", "the scheduler's own work is a part of the host's time"),
    Relation("H301", "yields to", "H302", "without CUDA graphs the host's time goes into launches"),
    Relation("H301", "yields to", "H303", "the load's batch, or its mixed batches, exceed the CUDA graphs"),
    Relation("H301", "yields to", "H307", "the GPU waits for weights from host memory"),
    Relation("H301", "yields to", "S205", "drafts that bring nothing are what the host does"),
    Relation("H301", "rival of", "K403", "the step follows the host or the batch"),
    Relation("H301", "rival of", "S204", "the GPU idles inside decode steps or beside them"),
    Relation("H301", "rival of", "H302", "launches are a part of the host's time"),
    Relation("H302", "rival of", "K404", "many small kernels are slow to launch and slow to run"),
    Relation("H303", "yields to", "H302", "without any CUDA graph no batch size matters"),
    Relation("H303", "rival of", "H301", "the host may be slow within the graphs as well"),
    Relation("H303", "rival of", "K403", "the step grows with the batch, or jumps at one"),
    Relation("H303", "rival of", "K404", "larger batches may take another kernel"),
    Relation("H304", "rival of", "L101", "tokens are late in the server or in the client"),
    Relation("H304", "rival of", "S204", "prefill between decode steps delays tokens as well"),
    Relation("H305", "rival of", "H306", "grammars and neighbours both take the host's cores"),
    Relation("H307", "rival of", "H301", "the GPU idles while it waits for the host, or for a copy"),
    Relation("K400", "rival of", "K402", "attention takes long by the shape of its grid"),
    Relation("K400", "rival of", "K404", "a part takes long by running operator by operator"),
    Relation("K400", "rival of", "K405", "products take long by their number type"),
    Relation("K400", "rival of", "P601", "a low clock makes every part long"),
    Relation("K401", "yields to", "K402", "the cost follows the live context"),
    Relation("K401", "yields to", "H304", "the client's gaps hold what delays tokens on their way"),
    Relation("K401", "rival of", "K403", "a line in the batch fits work per request as well"),
    Relation("K401", "rival of", "K404", "a line in the batch fits general kernels as well"),
    Relation("K401", "rival of", "H301", "the step is long by GPU work or by the host"),
    Relation("K402", "rival of", "H301", "the step is long by GPU work or by the host"),
    Relation("K402", "rival of", "K404", "attention is slow by its grid or by its kernel"),
    Relation("K403", "rival of", "S201", "requests that wait behind a cap bring no more tokens either"),
    Relation("K403", "yields to", "K402", "the cost follows the live context"),
    Relation("K403", "yields to", "H304", "the client's gaps hold what delays tokens on their way"),
    Relation("K403", "rival of", "K401", "a line in the batch fits work over the configured context as well"),
    Relation("K403", "rival of", "K404", "a line in the batch fits general kernels as well"),
    Relation("K403", "rival of", "H301", "the step is long by GPU work or by the host"),
    Relation("K404", "yields to", "K401", "the general kernels work over the configured context"),
    Relation("K404", "yields to", "K403", "a kernel is launched for one request after the other"),
    Relation("K404", "rival of", "H301", "the step is long by GPU work or by the host"),
    Relation("K405", "rival of", "K404", "general kernels often compute in 32 bits"),
    Relation("K405", "rival of", "H301", "the step is long by GPU work or by the host"),
    Relation("K406", "rival of", "K405", "an idle tensor pipe may be products that avoid it"),
    Relation("K407", "rival of", "K402", "attention reads too much, or too slowly"),
    Relation("C500", "rival of", "C501", "a collective lasts by moving data"),
    Relation("C500", "rival of", "C502", "a collective lasts by waiting"),
    Relation("C501", "rival of", "C502", "a collective lasts by moving data or by waiting"),
    Relation("C501", "rival of", "H301", "the step is long by GPU work or by the host"),
    Relation("C502", "rival of", "C501", "a collective lasts by moving data or by waiting"),
    Relation("C502", "rival of", "H301", "the rank is late by its GPU or by its host"),
)  # fmt: skip


def relations_of(code: str) -> tuple[Relation, ...]:
    """The rows of a rule and of its family."""
    return tuple(relation for relation in RELATIONS if code.startswith(relation.code))


def outranks_all(code: str) -> bool:
    """True of a fault of the measurement that comes before every cause once it is confirmed."""
    kinds = {relation.kind for relation in relations_of(code) if relation.other == ALL}
    return "outranks" in kinds and "ranks after" not in kinds


def relation_lines(code: str) -> str:
    """The rows of a rule as one more section of its page."""
    rows = [f"    {one.kind} {one.other}: {one.reason}." for one in relations_of(code)]
    return "\n".join(("Other rules:", *(rows or ["    none: it is judged beside no other rule"])))

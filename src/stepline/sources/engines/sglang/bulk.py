"""SGLang's batch lines many at a time, for logs of hundreds of megabytes.

Without its digits a line is its shape: all lines of one shape have the same keys in the same order. Without
its words it is a row of comma-separated numbers. So each shape is read once by the reader of single lines,
and all its rows by a native CSV reader. A line of an irregular shape, or without the numbers a record
needs, goes back to the reader of single lines, so both ways read the same.
"""

import io
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from stepline.sources import thin
from stepline.sources.engines.sglang.batch_lines import (
    BOOTSTRAPPING,
    GRAPH_KEYS,
    HEAD,
    INFLIGHT,
    PAIR,
    POOL_TOKENS,
    POOL_USAGES,
)
from stepline.sources.engines.sglang.prefix import parse_prefix

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

MAX_SHAPES = 256
_DIGITS = b"0123456789."
_WORDS = bytes(c for c in range(32, 127) if chr(c) not in "0123456789.,") + b"\r\t"
"""What is not of a number or a separator."""
_PLAIN = re.compile(r"\d+(?:\.\d+)?%?|-?inf%?|nan%?|True|False")

DECODE: dict[str, tuple[str, ...]] = {
    "running": ("#running-req",),
    "queued": ("#queue-req",),
    "pool_tokens": POOL_TOKENS,
    "retracted": ("#retracted-req",),
    "transferring": ("#transfer-req",),
    "preallocated": ("#prealloc-req",),
    "tok_s": ("gen throughput (token/s)",),
    "accept_length": ("accept len",),
    "accept_rate": ("accept rate",),
    "forward_busy": ("fwd occupancy",),
}
PREFILL: dict[str, tuple[str, ...]] = {
    "new_sequences": ("#new-seq",),
    "new_tokens": ("#new-token",),
    "cached_tokens": ("#cached-token",),
    "running": ("#running-req",),
    "queued": ("#queue-req",),
    "pending_tokens": ("#pending-token",),
    "inflight": INFLIGHT,
    "bootstrapping": BOOTSTRAPPING,
    "tok_s": ("input throughput (token/s)",),
}
KINDS = {"Decode": 1, "Prefill": 2}
NEEDED = {"Decode": ("running",), "Prefill": ("new_sequences", "new_tokens")}


class Shape(NamedTuple):
    """What all lines of one shape have in common."""

    kind: str
    fields: dict[str, list[tuple[int, float]]]
    """For each field of a record the columns whose maximum it is, and what each is divided by."""
    graph: bool | None


def learn(line: str) -> Shape | None:
    """The shape of a whole batch line; None for anything less regular."""
    heads = list(HEAD.finditer(line))
    if len(heads) != 1 or line.count(" batch") != 1:
        return None
    head = heads[0]
    pairs: dict[str, str] = {}
    end = head.end()
    for match in PAIR.finditer(line, head.end()):
        regular = line[end : match.start()] == (", " if pairs else "")
        if not regular or match["key"] in pairs or not _PLAIN.fullmatch(match["value"]):
            return None
        pairs[match["key"]] = match["value"]
        end = match.end()
    if "#queue-req" not in pairs or line[end:].strip(", \r"):
        return None
    first = 2 if "[" in head[0] else 1
    columns = {key: (first + at, 100.0 if pairs[key].endswith("%") else 1.0) for at, key in enumerate(pairs)}
    fields = {
        name: [columns[key] for key in keys if key in columns][:1]
        for name, keys in (DECODE if head["kind"] == "Decode" else PREFILL).items()
    }
    fields["pool_usage"] = [columns[key] for key in POOL_USAGES if key in columns]
    graph = next((pairs[key] == "True" for key in GRAPH_KEYS if key in pairs), None)
    return Shape(head["kind"], {name: found for name, found in fields.items() if found}, graph)


class Bulk:
    """Reads pieces of a log; keeps the shapes it has learned."""

    def __init__(self) -> None:
        self._shapes: dict[str, Shape | None] = {}

    def read(self, frame: "pl.DataFrame") -> "tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]":
        """(decode rows, prefill rows, lines left over) of a frame of `number` and `line`."""
        import polars as pl  # noqa: PLC0415

        batch = frame["line"].str.contains_any(["Decode batch", "Prefill batch"])
        lines, left = frame.filter(batch), frame.filter(~batch)
        if not lines.height:
            none = (pl.DataFrame(schema=thin.decode_schema()), pl.DataFrame(schema=thin.prefill_schema()))
            return *none, left
        parts = lines["line"].str.splitn(" batch", 2).struct.unnest()
        prefix, body = parts["field_0"], parts["field_1"]
        # Without the point or comma of the head, both of its spellings have the same columns. The comma before
        # keeps a line without numbers from being an empty one, which the CSV reader would skip.
        text = b"," + body.str.slice(1).str.join("\n,")[0].encode()
        names = (
            prefix.str.slice(-3)
            + pl.Series([text.translate(None, _DIGITS).decode()]).str.split("\n").explode()
        )
        groups = (
            pl.DataFrame({"shape": names})
            .with_row_index("row")
            .group_by("shape", maintain_order=True)
            .agg("row")
        )
        shapes = [
            (shape, rows.to_numpy())
            for name, rows in zip(groups["shape"], groups["row"], strict=True)
            if (shape := self._shape(name, lines["line"][rows[0]]))
        ]
        values = _values(shapes, text.translate(None, _WORDS), lines.height)
        rows = pl.DataFrame(values, nan_to_null=True).with_columns(
            lines["number"],
            _rank(prefix, "DP").alias("dp"),
            _rank(prefix, "PP").alias("pp"),
            # Only when the piece ends is of use: no record of a sum has a time of its own.
            pl.lit(parse_prefix(prefix[-1] or "").time_s, dtype=pl.Float64).alias("time_s"),
            instrument=pl.lit("window"),
            ranks_summed=1,
        )
        decode, prefill = (
            (rows["kind"] == KINDS[kind])
            & rows.select(pl.all_horizontal(pl.col(NEEDED[kind]).is_not_null())).to_series()
            for kind in NEEDED
        )
        return (
            _in_schema(rows.filter(decode), thin.decode_schema()),
            _in_schema(rows.filter(prefill), thin.prefill_schema()),
            pl.concat([left, lines.filter(~(decode | prefill))]).sort("number"),
        )

    def _shape(self, name: str, line: str) -> Shape | None:
        if name not in self._shapes and len(self._shapes) < MAX_SHAPES:
            self._shapes[name] = learn(line)
        return self._shapes.get(name)


def _values(shapes: "list[tuple[Shape, NDArray[Any]]]", text: bytes, height: int) -> dict[str, Any]:
    """The fields of records, each a column of `height` numbers (NaN where a line has none), and the kind.

    `shapes` come with the places of their lines in `text`, which holds the numbers of every line.
    """
    import numpy as np  # noqa: PLC0415
    import polars as pl  # noqa: PLC0415

    width = 1 + max(
        (at for shape, _ in shapes for found in shape.fields.values() for at, _ in found), default=0
    )
    header = ",".join(map(str, range(width)))
    numbers = pl.read_csv(
        io.BytesIO(header.encode() + b"\n" + text),
        quote_char=None,
        schema=dict.fromkeys(header.split(","), pl.Float64),
        ignore_errors=True,
        truncate_ragged_lines=True,
    ).to_numpy()
    values = {name: np.full(height, np.nan) for name in (*DECODE, *PREFILL, "pool_usage", "graph")}
    kinds = np.zeros(height, dtype=np.int8)
    for shape, rows in shapes:
        kinds[rows] = KINDS[shape.kind]
        for name, found in shape.fields.items():
            values[name][rows] = np.fmax.reduce([numbers[rows, at] / scale for at, scale in found])
        if shape.graph is not None:
            values["graph"][rows] = shape.graph
    return {**values, "kind": kinds}


def _in_schema(frame: "pl.DataFrame", schema: dict[str, Any]) -> "pl.DataFrame":
    """The columns of the schema; those that the frame lacks are null."""
    import polars as pl  # noqa: PLC0415

    return frame.select(
        (pl.col(name) if name in frame.columns else pl.lit(None)).cast(kind, strict=False).alias(name)
        for name, kind in schema.items()
    )


def _rank(prefix: "pl.Series", tag: str) -> "pl.Series":
    """The number behind a rank's tag."""
    import polars as pl  # noqa: PLC0415

    if not prefix.str.contains_any([f" {tag}", f"[{tag}"]).any():
        return pl.repeat(None, len(prefix), dtype=pl.Int64, eager=True)
    return prefix.str.extract(rf"[ \[]{tag}([0-9]+)").cast(pl.Int64, strict=False)

"""JSON documents: `/server_info`, a model's config.json, tables of rows. Each is told by its content."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from stepline.errors import UnreadableEvidence
from stepline.evidence.origin import Origin, Sourced
from stepline.evidence.run import EvidenceFile, Run
from stepline.sources.engines import ENGINES
from stepline.sources.importers.registry import import_results
from stepline.sources.importers.values import word
from stepline.sources.logs.lines import unwrapped
from stepline.sources.peek import Peek
from stepline.sources.readers import prometheus_json, table

MAX_BYTES = 256 << 20
DOCUMENTS = tuple(reader for engine in ENGINES for reader in engine.documents)
WORKLOADS = ("dataset_name", "dataset", "dataset_path", "workload", "schedule", "scenario", "input_file")
"""Names under which bench clients keep what they sent: vLLM and SGLang `dataset_name`, AIPerf `input_file`, LLMPerf
`dataset`, replay clients `schedule`."""
_OPENS = re.compile(rb"\s*(?:\{|\[\s*[\[{\]])")
"""A bracket alone is no JSON: most log lines open with their time in one."""


def recognises(peek: Peek) -> bool:
    """True for text that opens as a JSON object or a list of them, unless a trace or a log."""
    if peek.binary or b'"traceEvents"' in peek.head or not _OPENS.match(peek.head):
        return False
    first_line = peek.head.lstrip().split(b"\n", 1)[0].decode("utf-8", "replace")
    return unwrapped(first_line) == first_line


def read_document(peek: Peek) -> Run | tuple[Run, ...]:
    """Read one JSON document; results of several servers are a run each.

    Raises:
        UnreadableEvidence: when it is truncated or damaged, or its content is of no known kind.
    """
    document = decode(peek)
    known = next((reader for reader in DOCUMENTS if reader.recognises(document)), None)
    if known is not None:
        run = known.read(document, peek.name)
        file = EvidenceFile(
            path=peek.name, kind=known.kind, records=1 if known.kind == "server info" else len(run.decodes)
        )
        return msgspec.structs.replace(run, files=(file,))
    if isinstance(document, dict) and _is_model_config(document):
        config = Sourced(document, Origin(peek.name))
        return Run(files=(EvidenceFile(path=peek.name, kind="model config", records=1),), model_config=config)
    if prometheus_json.recognises(document):
        return prometheus_json.read_answer(document, peek.name)
    imported = import_results(document, peek.name)
    if imported is not None:
        return imported
    rows = table.rows_of(document)
    if rows is not None:
        return _with_workloads(table.read_rows(rows, peek.name), rows)
    raise UnreadableEvidence(
        f"{peek.name}: JSON of no known kind; expected server info, a model config or table rows"
    )


def _with_workloads(run: Run, rows: Sequence[Mapping[str, Any]]) -> Run:
    """The levels of rows with the workload that each row names; one that is named otherwise stays without."""
    if len(run.levels) != len(rows):
        return run
    levels = tuple(
        msgspec.structs.replace(level, workload=level.workload or word(row, *WORKLOADS))
        for level, row in zip(run.levels, rows, strict=True)
    )
    return msgspec.structs.replace(run, levels=levels)


def decode(peek: Peek) -> Any:
    """The JSON value of a file; bare NaN and Infinity, as Python's json writes them, become null."""
    with peek.open() as stream:
        content = stream.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise UnreadableEvidence(
            f"{peek.name}: over {MAX_BYTES >> 20} MB of JSON; give the part that matters"
        )
    try:
        return msgspec.json.decode(content)
    except RecursionError:
        raise UnreadableEvidence(
            f"{peek.name}: JSON nested too deeply for any evidence; check the file"
        ) from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _decode_slowly(content, peek)


def _decode_slowly(content: bytes, peek: Peek) -> Any:
    import json  # noqa: PLC0415  # only for documents with NaN, or damaged ones

    text = content.decode("utf-8", "replace")
    try:
        return json.loads(text, parse_constant=lambda _name: None)
    except json.JSONDecodeError as error:
        lines = [line for line in text.splitlines() if line.strip()]
        try:
            return [json.loads(line, parse_constant=lambda _name: None) for line in lines]
        except json.JSONDecodeError:
            pass
        if len(objects := _objects_among(lines)) > 1:
            return objects
        ends = "ends early" if error.pos >= len(text.rstrip()) - 1 else "is damaged"
        raise UnreadableEvidence(
            f"{peek.name}: the JSON {ends} at line {error.lineno}, column {error.colno} ({error.msg}); "
            "record or copy the file again"
        ) from None


def _objects_among(lines: list[str]) -> list[Any]:
    """The objects of JSON Lines that have lines of something else among them."""
    found = []
    for line in lines:
        if line.startswith("{") and line.rstrip().endswith("}"):
            try:
                found.append(msgspec.json.decode(line))
            except (msgspec.DecodeError, RecursionError):
                continue
    return found


def _is_model_config(document: dict[str, Any]) -> bool:
    nested = document.get("text_config") or document.get("llm_config") or document
    return isinstance(nested, dict) and (
        ("hidden_size" in nested or "dim" in nested)
        and ("model_type" in document or "architectures" in document or "n_layers" in nested)
    )

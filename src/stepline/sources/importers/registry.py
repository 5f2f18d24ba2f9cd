"""Which importer a JSON document belongs to: one file and one line of this explicit list for each."""

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from stepline.evidence.load import LoadLevel, StepRow
from stepline.evidence.origin import Origin
from stepline.evidence.run import EvidenceFile, Run
from stepline.sources.arguments import flat_arguments
from stepline.sources.importers import (
    aiperf,
    guidellm,
    inference_perf,
    inferencex,
    sglang_bench,
    vllm_bench,
)

PER_REQUEST = "requests"
"""Origin field of a level that was summed up here from a tool's per-request file."""


class Importer(Protocol):
    """A module that reads one tool's results, one level an object."""

    TOOL: str

    def recognises(self, document: object) -> bool:
        """True for an object of this tool."""

    def read_level(self, document: Mapping[str, Any], origin: Origin, /) -> LoadLevel | StepRow | None:
        """What the object says; None where it says nothing whole."""


ONE_RESULT: tuple[Importer, ...] = (
    # These three have names that no other tool writes, so their order is free.
    inferencex,
    aiperf,
    inference_perf,
    # Two tools write the same names; vLLM's adds the total of tokens, and sglang's has a backend and no such total.
    vllm_bench,
    sglang_bench,
)
"""In the order they are asked. Reports of several levels and per-request files are told before these."""


def import_results(document: Any, file: str) -> tuple[Run, ...] | None:
    """The load levels in another tool's result file, one run for each server it names; None if no importer knows it."""
    if guidellm.recognises(document):
        return (_run(list(guidellm.read_levels(document, file)), file, guidellm.TOOL),)
    if aiperf.recognises_rows(document):
        level = aiperf.read_rows(document, Origin(file, None, PER_REQUEST))
        return (_run([level], file, aiperf.TOOL),)
    rows = document if isinstance(document, list) else [document]
    tool = next((one for one in ONE_RESULT if rows and one.recognises(rows[0])), None)
    if tool is None:
        return None
    servers: dict[Any, tuple[Mapping[str, Any], list[Any]]] = {}
    for index, row in enumerate(rows):
        if tool.recognises(row):
            made = tool.read_level(row, Origin(file, None, f"[{index}]" if len(rows) > 1 else None))
            servers.setdefault(_server_key(row), (row, []))[1].append(made)
    alone = len(rows) == 1
    return tuple(
        _with_server(_run(made, file, tool.TOOL), tool, row, file, alone=alone)
        for row, made in servers.values()
    )


def _server_key(row: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """What tells the servers of two rows apart, where rows name theirs."""
    info = row.get("server_info")
    return tuple(sorted(flat_arguments(info).items())) if isinstance(info, Mapping) else ()


def _with_server(run: Run, tool: Any, row: Mapping[str, Any], file: str, *, alone: bool) -> Run:
    """What the results say about the server, where all of them can only speak of one."""
    if tool is inferencex and alone:
        return msgspec.structs.replace(run, server=inferencex.read_server(row, file))
    if tool is sglang_bench and (server := sglang_bench.read_server(row, file)) is not None:
        return msgspec.structs.replace(run, server=server.server, metrics=server.metrics, start=server.start)
    return run


def _run(made: list[Any], file: str, tool: str) -> Run:
    levels = tuple(one for one in made if isinstance(one, LoadLevel))
    steps = tuple(one for one in made if isinstance(one, StepRow))
    count = len(levels) + len(steps)
    evidence = EvidenceFile(
        path=file, kind="load levels", note=tool, records=count, damaged=len(made) - count
    )
    return Run(files=(evidence,), levels=levels, step_rows=steps)

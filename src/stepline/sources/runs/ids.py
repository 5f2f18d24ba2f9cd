"""Readable ids: what differs between runs, and no path where that is enough."""

import re
from collections.abc import Callable, Sequence
from pathlib import PurePath

import msgspec

from stepline.evidence.run import Run

_OTHER = re.compile(r"[^A-Za-z0-9.+-]+")
LONGEST, LONGEST_WORD = 60, 32


def with_ids(runs: Sequence[Run]) -> tuple[Run, ...]:
    """The runs, each with an id that no other has."""
    if len(runs) == 1:
        return (msgspec.structs.replace(runs[0], id="run"),)
    words: list[list[str]] = [[] for _ in runs]
    for say in TOLD:
        told = [_plain(say(run)) for run in runs]
        tied = [[at for at, own in enumerate(words) if own == mine] for mine in words]
        apart = [len({told[at] for at in group}) > 1 for group in tied]
        for own, word, differs in zip(words, told, apart, strict=True):
            if word and differs:
                own.append(word)
    named = ["-".join(own)[:LONGEST].strip("-") or "run" for own in words]
    return tuple(
        msgspec.structs.replace(run, id=name if named.count(name) == 1 else f"{name}-{_place(named, at)}")
        for at, (run, name) in enumerate(zip(runs, named, strict=True))
    )


def _place(named: Sequence[str], at: int) -> int:
    """Which of those that share a name this one is, from 1."""
    return named[: at + 1].count(named[at])


def _fact(name: str, short: str = "") -> Callable[[Run], str]:
    def say(run: Run) -> str:
        known = getattr(run.server, name)
        if known is None:
            return ""
        value = (
            {True: "on", False: "off"}.get(known.value, known.value)
            if isinstance(known.value, bool)
            else known.value
        )
        return f"{short}{value}"

    return say


def _model(run: Run) -> str:
    told = run.server.model.value if run.server.model else next((x.model for x in run.levels if x.model), "")
    return PurePath(told).name.lower() if told else ""


def _load(run: Run) -> str:
    heaviest = max((level.concurrency or 0.0 for level in run.levels), default=0.0)
    return f"c{heaviest:g}" if heaviest else ""


def _workload(run: Run) -> str:
    return next((PurePath(level.workload).stem for level in run.levels if level.workload), "")


def _lengths(run: Run) -> str:
    level = next((x for x in run.levels if x.input_tokens and x.output_tokens), None)
    return "" if level is None else f"{level.input_tokens:.0f}in{level.output_tokens:.0f}out"


def _source(run: Run) -> str:
    return "" if run.start is None or run.start.source is None else run.start.source.rpartition("/")[2]


def _folder(run: Run) -> str:
    """The folder, where nothing inside the files tells runs apart."""
    folders = {PurePath(file.path).parent.name for file in run.files if file.kind}
    return next(iter(folders)) if len(folders) == 1 else ""


def _arm(run: Run) -> str:
    return next((level.served_with for level in run.levels if level.served_with), "")


TOLD: tuple[Callable[[Run], str], ...] = (
    _fact("engine"),
    _model,
    _fact("disaggregation"),
    _fact("tp", "tp"),
    _fact("dp", "dp"),
    _fact("ep", "ep"),
    _fact("quantization"),
    _arm,
    _fact("context_length", "ctx"),
    _fact("max_running", "cap"),
    _fact("speculative"),
    _fact("moe_backend"),
    _fact("attention_backend"),
    _fact("decode_graphs", "graphs-"),
    _fact("overlap_schedule", "overlap-"),
    _fact("prefix_cache", "prefix-cache-"),
    _fact("kv_dtype", "kv-"),
    _fact("chunked_prefill_tokens", "chunk"),
    _load,
    _workload,
    _lengths,
    _source,
    _folder,
)


def _plain(word: str) -> str:
    return _OTHER.sub("-", word).strip("-")[:LONGEST_WORD].strip("-")

"""Reads files and folders of evidence, each recognised by its content, and tells their runs apart."""

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from stepline.errors import UnreadableEvidence, UsageError
from stepline.evidence import bundle
from stepline.evidence.evidence import Evidence
from stepline.evidence.run import EvidenceFile, Run
from stepline.sources import archives, client_file
from stepline.sources.importers.registry import PER_REQUEST
from stepline.sources.logs import rotation
from stepline.sources.peek import Peek, peek
from stepline.sources.readers import document, environment, log, prometheus, table, text
from stepline.sources.runs.group import group

MAX_FILES = 10_000


class Reader(NamedTuple):
    """A file format: how it is recognised and read."""

    recognises: Callable[[Peek], bool]
    read: Callable[[Peek], Run | tuple[Run, ...]]
    """What the file says, of each server that it speaks of."""


def is_trace(opening: Peek) -> bool:
    """True for a profiler trace: Chrome's JSON, or the database of Nsight Systems."""
    return b'"traceEvents"' in opening.head or opening.head.startswith(b"SQLite format 3\x00")


def list_trace(opening: Peek) -> Run:
    """A trace is only listed: condensing one takes judgement, which sources have none of."""
    return Run(files=(EvidenceFile(path=opening.name, kind="profiler trace"),))


READERS = (
    # Before logs: a trace quotes the engine's files and functions, which a log reader takes for a line of its own.
    Reader(is_trace, list_trace),
    # The recording's own two files are JSON: before documents, which would take their rows for a table.
    Reader(client_file.recognises, client_file.read_live),
    # JSON, unless its first line is a log line that a collector wrapped. Before all text, as a document may quote
    # a metric's name or a log line.
    Reader(document.recognises, document.read_document),
    # Wants a comment or sample of Prometheus's own form, which no log line has; a metric's help may hold log words.
    Reader(prometheus.recognises, prometheus.read_prometheus),
    # Asks each engine for a line that only it writes. Before tables: a log line may hold commas and known words.
    Reader(log.recognises, text.read_log),
    # Assignments of known variables, one a line: no table, so it comes before them.
    Reader(environment.recognises, environment.read_environment),
    # Any text whose first line names a known column: the weakest sign, so it comes last.
    Reader(table.recognises, table.read_table),
)
"""All that can be read, in the order in which a file is offered; the first that recognises it reads it."""


def read(
    paths: Iterable[str | Path],
    on_file: Callable[[str], None] = lambda _name: None,
    on_bytes: Callable[[int, int], None] = lambda _done, _total: None,
) -> Evidence:
    """Read every file under `paths` and tell the runs apart.

    `on_file` is told each name before it is read, `on_bytes` how many bytes of how many are done, as they
    lie on the disk. Files of no known kind are passed over and listed with the reason.

    Raises:
        UsageError: when a path does not exist.
        UnreadableEvidence: when nothing under the paths could be read.
    """
    with archives.unpacked(paths) as found:
        return _read_paths(found, on_file, on_bytes)


def _read_paths(
    paths: Iterable[str | Path], on_file: Callable[[str], None], on_bytes: Callable[[int, int], None]
) -> Evidence:
    saved: list[Run] = []
    runs: list[Run] = []
    passed: list[EvidenceFile] = []
    bundles, loose = _without_bundles(paths)
    for folder in bundles:
        on_file(str(folder))
        try:
            saved.append(bundle.load(folder))
        except UnreadableEvidence as error:
            passed.append(EvidenceFile(path=folder.name, kind=None, note=str(error)))
    inside = {file.path for run in saved for file in run.files}
    sizes = {path: path.stat().st_size for path, _ in loose}
    progress = _Progress(sum(sizes.values()), on_bytes)
    for path, name in sorted(loose, key=lambda one: rotation.order(one[1])):
        if name in inside:
            continue  # the bundle was made from it
        progress.begin(sizes[path])
        on_file(name)
        try:
            found = _read_one(path, name, progress.add)
            runs += found if isinstance(found, tuple) else (found,)
        except UnreadableEvidence as error:
            passed.append(EvidenceFile(path=name, kind=None, note=str(error)))
    progress.end()
    if not runs and not saved:
        raise UnreadableEvidence(_nothing_read(passed))
    return group(_without_repeats(runs), saved, passed)


def read_one_run(
    paths: Iterable[str | Path],
    on_file: Callable[[str], None] = lambda _name: None,
    on_bytes: Callable[[int, int], None] = lambda _done, _total: None,
) -> Run:
    """Read files of one run, such as one table or one recording.

    Raises:
        UsageError: when they are of several runs.
    """
    return one_run(read(paths, on_file, on_bytes))


def one_run(evidence: Evidence) -> Run:
    """The run of evidence that is of one.

    Raises:
        UsageError: when it is of several, or what it holds joins none.
    """
    if not evidence.runs:
        raise UsageError(evidence.ungrouped[0].reason)
    if len(evidence.runs) != 1:
        ids = ", ".join(run.id for run in evidence.runs[:8])
        raise UsageError(f"these files are of {len(evidence.runs)} runs ({ids}); give those of one")
    return evidence.runs[0]


class _Progress:
    """Bytes done over all files; a file that is passed over counts as done."""

    def __init__(self, total: int, tell: Callable[[int, int], None]) -> None:
        self._total = total
        self._tell = tell
        self._before = self._done = self._size = 0

    def begin(self, size: int) -> None:
        """The file before is done, one of `size` bytes begins."""
        self._before += self._size
        self._size, self._done = size, 0
        self._tell(self._before, self._total)

    def add(self, count: int) -> None:
        """So many more bytes of the file were read; some are read twice, none counts twice."""
        self._done = min(self._size, self._done + count)
        self._tell(self._before + self._done, self._total)

    def end(self) -> None:
        """All is done."""
        self._tell(self._total, self._total)


def _read_one(path: Path, name: str, on_bytes: Callable[[int], None]) -> Run | tuple[Run, ...]:
    opening = peek(path, name, on_bytes)
    if not opening.head:
        raise UnreadableEvidence(f"{name}: the file is empty")
    for reader in READERS:
        if reader.recognises(opening):
            return reader.read(opening)
    if opening.binary:
        raise UnreadableEvidence(f"{name}: a binary file, no evidence that stepline reads")
    if re.match(rb"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d(?:\.\d+)?, *\S+,", opening.head):
        raise UnreadableEvidence(
            f"{name}: samples of nvidia-smi without a header, so what its columns count is not told; add the names of "
            "its --query-gpu as a first line, or record it without noheader"
        )
    if columns := table.columns_of(opening):
        named = ", ".join(columns[:8])
        raise UnreadableEvidence(
            f"{name}: a table whose columns ({named}) name no load level, step, lever or GPU counter"
        )
    raise UnreadableEvidence(
        f"{name}: no line of a known engine and no known table; expected a server's log, /server_info, "
        "/metrics, a model's config.json, or a CSV or JSON table of load levels"
    )


def trace_files(paths: Iterable[str | Path]) -> list[tuple[Path, str]]:
    """The profiler traces under the paths, by content, each with the name it has in evidence."""
    return [(path, name) for path, name in _files(paths) if is_trace(peek(path, name))]


def _without_repeats(runs: list[Run]) -> list[Run]:
    """Without the levels of a per-request file that stand summed up in a result file of its folder."""
    summed = {
        (str(Path(level.origin.file).parent), level.tool)
        for run in runs
        for level in run.levels
        if level.tool and level.origin.field != PER_REQUEST
    }
    return [
        msgspec.structs.replace(
            run,
            levels=tuple(
                level
                for level in run.levels
                if level.origin.field != PER_REQUEST
                or (str(Path(level.origin.file).parent), level.tool) not in summed
            ),
        )
        for run in runs
    ]


def _without_bundles(paths: Iterable[str | Path]) -> tuple[list[Path], list[tuple[Path, str]]]:
    """Folders that are saved bundles, and all other files."""
    folders: list[Path] = []
    loose: list[tuple[Path, str]] = []
    own: set[Path] = set()
    checked: dict[Path, bool] = {}
    for path, name in _files(paths):
        folder = path.parent
        if folder not in checked:
            checked[folder] = bundle.is_bundle(folder)
            if checked[folder]:
                folders.append(folder)
                own.update(bundle.files_of(folder))
        if path not in own and not path.name.endswith(bundle.PART):
            loose.append((path, name))
    return folders, loose


def _files(paths: Iterable[str | Path]) -> Iterator[tuple[Path, str]]:
    seen = 0
    for given in paths:
        root = Path(given)
        if not str(given).strip() or not root.exists():
            raise UsageError(
                f"{given or 'an empty path'}: no such file or folder; give files and folders of evidence"
            )
        found = [root] if root.is_file() else sorted(p for p in _below(root) if p.is_file())
        for path in found:
            if any(part.startswith(".") for part in path.relative_to(root).parts):
                continue
            seen += 1
            if seen > MAX_FILES:
                raise UsageError(f"{given}: over {MAX_FILES} files; give the folder of one run")
            yield path, str(path.relative_to(root)) if root.is_dir() else root.name
    if seen == 0:
        raise UnreadableEvidence(
            "the folder is empty; record something first: the log, /server_info, /metrics"
        )


def _below(root: Path) -> Iterator[Path]:
    """Everything in a folder, and in folders that it links to: a campaign may link to its runs."""
    yield from root.rglob("*")
    for link in root.iterdir():
        if link.is_symlink() and link.is_dir():
            yield from link.rglob("*")


def _nothing_read(passed: list[EvidenceFile]) -> str:
    notes = [file.note or file.path for file in passed]
    if len(notes) == 1:
        return notes[0]
    return f"none of {len(notes)} files could be read; the first: {notes[0]}"

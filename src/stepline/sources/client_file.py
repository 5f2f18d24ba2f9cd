"""The bundle's own two files of a live recording: what the server was found to be, and what the client saw.

`server.json` is one object, `client.jsonl` one object a line, appended when a level ends. Both name their
format in the first field, so that they are recognised by content.
"""

from pathlib import Path
from typing import Any

import msgspec

from stepline.errors import UnreadableEvidence
from stepline.evidence.load import LoadLevel
from stepline.evidence.origin import Origin, Sourced
from stepline.evidence.run import EvidenceFile, ReadingDoubt, Run
from stepline.evidence.scheduler import DecodeReport
from stepline.evidence.server import ServerFacts
from stepline.evidence.start import Start
from stepline.sources.arguments import port_in
from stepline.sources.peek import Peek

SERVER_FORMAT = "stepline-server"
CLIENT_FORMAT = "stepline-client"
SERVER_FILE = "server.json"
CLIENT_FILE = "client.jsonl"
METRICS_FILE = "metrics.txt"
VERSION = 1


class ServerRecord(msgspec.Struct, frozen=True, kw_only=True):
    """`server.json`."""

    format: str = SERVER_FORMAT
    version: int = VERSION
    url: str
    engine: str | None = None
    engine_version: str | None = None
    model: str | None = None
    context_tokens: int | None = None
    gpus: tuple[str, ...] = ()
    """Names of the GPUs on the server's machine, where it is this one."""
    lacks: tuple[str, ...] = ()
    started_s: float
    restarted_with: str | None = None
    """Flags that it was started with for this recording; None where it ran already."""
    others: str | None = None
    """What was seen of other people's requests before any load; None when nobody was there."""


class LevelRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One line of `client.jsonl`."""

    format: str = CLIENT_FORMAT
    version: int = VERSION
    why: str
    """What the level was to decide."""
    level: LoadLevel
    stretches: tuple[DecodeReport, ...]


def append_level(folder: Path, record: LevelRecord) -> None:
    """Add one line; a crash leaves the earlier ones whole."""
    with (folder / CLIENT_FILE).open("ab") as file:
        file.write(msgspec.json.encode(record) + b"\n")


def recognises(peek: Peek) -> bool:
    """True for a file whose first field names one of the two formats."""
    opening = peek.head.lstrip()[:40].replace(b" ", b"")
    return any(opening.startswith(f'{{"format":"{name}"'.encode()) for name in (SERVER_FORMAT, CLIENT_FORMAT))


def read_live(peek: Peek) -> Run:
    """Read either file.

    Raises:
        UnreadableEvidence: when `server.json` is damaged or nothing of `client.jsonl` is whole.
    """
    with peek.open() as stream:
        content = stream.read(64 << 20)
    if SERVER_FORMAT.encode() in content[:60]:
        return _server(content, peek.name)
    return _levels(content, peek.name)


def _server(content: bytes, file: str) -> Run:
    try:
        record = msgspec.json.decode(content, type=ServerRecord)
    except msgspec.DecodeError as error:
        raise UnreadableEvidence(f"{file}: damaged ({error}); record the server again") from None

    def at(field: str, value: Any) -> Any:
        return None if value is None else Sourced(value, Origin(file, None, field))

    facts = ServerFacts(
        engine=at("engine", record.engine),
        version=at("engine_version", record.engine_version),
        model=at("model", record.model),
        context_length=at("context_tokens", record.context_tokens),
        gpu=at("gpus", record.gpus[0] if record.gpus else None),
    )
    doubts: tuple[ReadingDoubt, ...] = ()
    if record.others is not None:
        doubts = (ReadingDoubt(topic="others", text=record.others, origin=Origin(file, None, "others")),)
    start = Start(
        origin=Origin(file),
        names=(record.model,) if record.model else (),
        port=port_in(record.url),
        first_s=record.started_s,
        last_s=record.started_s,
        capture=str(Path(file).parent),
    )
    files = (EvidenceFile(path=file, kind="server info", records=1),)
    return Run(files=files, server=facts, start=start, doubts=doubts)


def _levels(content: bytes, file: str) -> Run:
    records: list[LevelRecord] = []
    damaged = 0
    for line in content.splitlines():
        if line.strip():
            try:
                records.append(msgspec.json.decode(line, type=LevelRecord))
            except msgspec.DecodeError:
                damaged += 1
    if not records:
        raise UnreadableEvidence(f"{file}: no line is whole; record the server again")
    doubts: list[ReadingDoubt] = []
    if damaged:
        text = f"{damaged} lines of {file} are damaged: a recording that was cut off"
        doubts.append(ReadingDoubt(topic="damaged-lines", text=text))
    evidence = EvidenceFile(path=file, kind="client levels", records=len(records), damaged=damaged)
    return Run(
        files=(evidence,),
        levels=tuple(record.level for record in records),
        stretches=tuple(stretch for record in records for stretch in record.stretches),
        doubts=tuple(doubts),
    )

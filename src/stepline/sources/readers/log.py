"""Server logs of any known engine, plain or compressed, line by line."""

import msgspec

from stepline.evidence.run import EvidenceFile, ReadingDoubt, Run
from stepline.sources.engines.sglang.log import SglangLog
from stepline.sources.peek import Peek, open_bytes

DIALECTS = (SglangLog,)
MAX_LINE_BYTES = 1 << 20
"""Longer lines are cut: a start-up dump is under 30 kB, and a hostile line must not fill the memory."""


def recognises(peek: Peek) -> bool:
    """True when some engine knows a line of the opening."""
    return not peek.binary and any(dialect.recognises(peek.head) for dialect in DIALECTS)


def read_log(peek: Peek) -> Run:
    """Read a whole log; what stands before a damaged tail is kept and the damage named."""
    dialect = next(dialect for dialect in DIALECTS if dialect.recognises(peek.head))(peek.name)
    number, cut = 0, None
    with open_bytes(peek.path) as stream:
        try:
            while line := stream.readline(MAX_LINE_BYTES):
                number += 1
                dialect.feed(number, line.decode("utf-8", "replace").rstrip("\r\n"))
        except (EOFError, OSError) as error:
            cut = error
    run = dialect.finish()
    records = len(run.decodes) + len(run.prefills) + len(run.events)
    file = EvidenceFile(path=peek.name, kind="server log", records=records, damaged=dialect.damaged)
    doubts = run.doubts
    if cut is not None:
        doubts += (
            ReadingDoubt(topic="damaged-file", text=f"{peek.name} breaks off after line {number}: {cut}"),
        )
    return msgspec.structs.replace(run, files=(file,), doubts=doubts)

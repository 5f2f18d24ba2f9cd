"""Server logs of any known engine, plain or compressed, line by line."""

import msgspec

from stepline.evidence.merge import merge
from stepline.evidence.run import EvidenceFile, ReadingDoubt, Run
from stepline.sources import lines
from stepline.sources.engines.sglang.log import SglangLog
from stepline.sources.engines.vllm.log import VllmLog
from stepline.sources.peek import Peek, open_bytes

DIALECTS = (SglangLog, VllmLog)


def recognises(peek: Peek) -> bool:
    """True when some engine knows a line of the opening."""
    return not peek.binary and any(dialect.recognises(peek.head) for dialect in DIALECTS)


def read_log(peek: Peek) -> Run:
    """Read a whole log; what stands before a damaged tail is kept and the damage named.

    Where two engines wrote into one file, each reads its own lines, and their two names are a contradiction.
    """
    dialects = [dialect(peek.name) for dialect in DIALECTS if dialect.recognises(peek.head)]
    number, cut = 0, None
    with open_bytes(peek.path) as stream:
        try:
            for chunk in lines.chunks(stream):
                for line in lines.split(lines.without_colours(chunk)):
                    number += 1
                    for part in lines.segments(line):
                        text = lines.unwrapped(part)
                        for dialect in dialects:
                            dialect.feed(number, text)
        except (EOFError, OSError) as error:
            cut = error
    run = merge([dialect.finish() for dialect in dialects])
    records = len(run.decodes) + len(run.prefills) + len(run.events)
    damaged = sum(dialect.book.damaged for dialect in dialects)
    file = EvidenceFile(path=peek.name, kind="server log", records=records, damaged=damaged)
    doubts = run.doubts
    if cut is not None:
        doubts += (
            ReadingDoubt(topic="damaged-file", text=f"{peek.name} breaks off after line {number}: {cut}"),
        )
    return msgspec.structs.replace(run, files=(file,), doubts=doubts)

"""A second process that decodes blocks of the same file beside the reader.

This module is light, so that the process can be started before anything slow is imported.
"""

import gc
from collections.abc import Sequence
from ctypes import c_char
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stepline.sources.readers.torch_trace.columns import Block
    from stepline.sources.readers.torch_trace.share import Answer

BLOCK_MOST = 3 << 20
"""Longer blocks stay with the reader; a piece is two thirds of it."""
WAITING = 3
"""Blocks handed over at a time: one in work, and enough waiting for as long as the reader decodes its own."""


class CannotShare(Exception):
    """The helper was lost, or what it decoded turned out to lie behind the event list: one process reads alone."""


class Helper:
    """The process as its reader sees it; blocks travel through shared memory."""

    def __init__(self) -> None:
        context = get_context("spawn")
        self._memory = context.RawArray(c_char, WAITING * BLOCK_MOST)
        self._slots = memoryview(self._memory).cast("B")
        self._free = list(range(WAITING))
        self._talk, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(self._memory, theirs), daemon=True)
        self._process.start()
        theirs.close()

    def take(self, number: int, parts: Sequence[bytes | memoryview]) -> bool:
        """Hand a block over, in parts, unless the process is busy or the block too long.

        Raises:
            CannotShare: when the process has ended.
        """
        try:
            while self._talk.poll():
                self._free.append(self._talk.recv()[1])
            if not self._free or sum(map(len, parts)) > BLOCK_MOST:
                return False
            begin = end = self._free.pop() * BLOCK_MOST
            for part in parts:
                self._slots[end : end + len(part)] = part
                end += len(part)
            self._talk.send((number, begin, end))
        except (EOFError, OSError) as lost:
            raise CannotShare from lost
        return True

    def finish(self) -> "Answer":
        """Wait for its last block.

        Raises:
            CannotShare: when the process has ended.
        """
        try:
            self._talk.send(None)
            blocks: list[Block] = []
            while True:
                kind, content = self._talk.recv()
                if kind == "block":
                    blocks.append(content)
                elif kind == "answer":
                    return content._replace(blocks=blocks)  # type: ignore[no-any-return]
        except (EOFError, OSError) as lost:
            raise CannotShare from lost

    def close(self) -> None:
        """End the process, whether its answer came or not."""
        self._talk.close()
        self._process.join()


def _serve(memory: Any, talk: Connection) -> None:
    gc.disable()  # events are acyclic
    from stepline.sources.readers.torch_trace.share import Share  # noqa: PLC0415 - in this process alone

    share, slots = Share(), memoryview(memory).cast("B")
    try:
        while (job := talk.recv()) is not None:
            number, begin, end = job
            share.take(number, slots[begin:end])
            talk.send(("free", begin // BLOCK_MOST))
        answer = share.answer()
        while answer.blocks:  # one by one, so that they are not all in memory twice
            talk.send(("block", answer.blocks.pop()))
        talk.send(("answer", answer))
    except (EOFError, OSError):
        return  # the reader gave up

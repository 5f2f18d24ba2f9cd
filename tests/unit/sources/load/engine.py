"""An engine on paper: a closed loop served by a known law, as the client's records of it."""

from array import array
from collections import deque

from stepline.sources.load.answer import Record
from stepline.sources.load.stream_counts import Seen


def step_s(running: int) -> float:
    """Of a pure decode step."""
    return 0.004 + 0.0002 * running


class Request:
    def __init__(self, stream: int, asked: int, sent_s: float) -> None:
        self.stream, self.asked, self.sent_s = stream, asked, sent_s
        self.total = self.told = 0
        self.pieces = 0
        self.times, self.tokens = array("d"), array("d")

    def tell(self, now_s: float, per_event: int) -> None:
        """Hand over what is due: the first token at once, then every `per_event` tokens, and the end."""
        if self.total == 1 or self.total - self.told >= per_event or self.total == self.asked:
            self.times.append(now_s)
            self.tokens.append(self.total - self.told)
            self.told = self.total

    def record(self, ended_s: float) -> Record:
        return Record(
            stream=self.stream,
            asked=self.asked,
            due_s=self.sent_s,
            sent_s=self.sent_s,
            ended_s=ended_s,
            end="ok" if self.total == self.asked else "cut",
            times=self.times.tobytes(),
            tokens=self.tokens.tobytes(),
        )


def serve(
    lengths: list[list[int]],
    *,
    cap: int,
    pieces: int,
    piece_s: float,
    mixed: bool,
    per_event: int,
    end_s: float,
) -> list[Seen]:
    """The records of a level: stream i asks for `lengths[i]` in turn, over and over.

    At most `cap` requests are in the batch. A prompt takes `pieces` forwards, each `piece_s` longer than a step,
    one prompt at a time: between decode steps if not `mixed`, else together with them.
    """
    turns = [0] * len(lengths)
    queue = deque(Request(stream, answers[0], 0.0) for stream, answers in enumerate(lengths))
    batch: list[Request] = []
    prefilling: Request | None = None
    done: list[Record] = []
    now = 0.0
    while now < end_s:
        if prefilling is None and queue and queue[0].sent_s <= now and len(batch) < cap:
            prefilling = queue.popleft()
        decoding = list(batch) if mixed or prefilling is None else []
        if decoding or prefilling is not None:
            now += step_s(len(decoding))  # any forward reads the weights
        else:
            now = queue[0].sent_s
        if prefilling is not None:
            now += piece_s
            prefilling.pieces += 1
            if prefilling.pieces == pieces:
                decoding.append(prefilling)
                batch.append(prefilling)
                prefilling = None
        if now >= end_s:
            break
        for request in decoding:
            request.total += 1
            request.tell(now, per_event)
            if request.total == request.asked:
                batch.remove(request)
                done.append(request.record(now))
                turns[request.stream] += 1
                answers = lengths[request.stream]
                queue.append(
                    Request(request.stream, answers[turns[request.stream] % len(answers)], now + 1e-5)
                )
    still = [*batch, *queue, *([prefilling] if prefilling else [])]
    return [
        Seen(record)
        for record in (*done, *(request.record(end_s) for request in still if request.sent_s < end_s))
    ]

"""From the name of a measurement to what it measures: `median_tpot_ms` is TPOT, the median, in ms, of a request.

Words are combined by class, in any order; docs/quantities.md has the grammar as a table. Where a word would change
what is measured (`prefill tok/s`, `TTFT change`), nothing is understood and the reason is kept.
"""

import re
from collections.abc import Sequence
from functools import lru_cache

import msgspec

from stepline.sources.quantities.split import split
from stepline.sources.quantities.words import Phrase, elsewhere, phrases_of

TIMES = frozenset(
    (
        *("ttft", "tpot", "itl", "chunk_gap", "token_gap", "e2e", "step", "queue_time", "client_queue"),
        *("prefill_time", "decode_time", "duration"),
    )
)
"""Quantities that are a time, given in ms or in another unit of time."""
LOADS = ("concurrency", "running", "context", "input_tokens", "output_tokens")
"""What a number in a name may state: `c8`, `ctx_2048`."""
_WITH_NUMBER = re.compile(r"^([a-z]+)(\d+)([km]?)$")
_NUMBER = re.compile(r"^(\d+)([km]?)$")
_PERCENTILE = re.compile(r"^p(\d{1,3}(?:p\d+)?)$")
_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
_BINARY = {"": 1, "k": 1024, "m": 1024**2}
_SIZES = ("concurrency", "running", "waiting", "context", "input_tokens", "output_tokens")


class Quantity(msgspec.Struct, frozen=True, kw_only=True):
    """What a name says of its numbers; where `what` is None nothing is understood, and `refused` says why."""

    name: str
    what: str | None = None
    statistic: str | None = None
    """mean, p50, p99, p999, min, max, low, high, std or sum; None where the name says none."""
    unit: str | None = None
    """ns, us, ms, s, min, h, percent, share, mhz or w; of a rate the time it is over. None where none is said."""
    side: str | None = None
    """Tokens of the input, of the output, or of both."""
    per: str | None = None
    """Of each request (stream, user), GPU or node; None where of the whole server."""
    instrument: str | None = None
    at: tuple[tuple[str, float], ...] = ()
    """Loads that the name states: concurrency, running batch, context, tokens in or out."""
    unknown: tuple[str, ...] = ()
    """Words that mean nothing known; another column that differs in them alone is another arm or workload."""
    arm: tuple[str, ...] = ()
    """Words for one of two states that are compared, such as before, without, new."""
    refused: str | None = None
    unused: str | None = None
    """Why a name that says no quantity is passed over, where a word tells."""

    @property
    def is_time(self) -> bool:
        """True for a time, whose unit is to be known."""
        return self.what in TIMES

    @property
    def words(self) -> str:
        """What tells this column from another of the same quantity."""
        return " ".join((*self.arm, *self.unknown))


@lru_cache(maxsize=4096)
def parse(name: str) -> Quantity:
    """What the numbers under this name measure."""
    return _Reading(name).quantity()


class _Reading:
    """The phrases of one name by class."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.phrases = list(phrases_of(split(name)))
        self.at: dict[str, float] = {}
        self.statistic: str | None = None
        self.unknown: list[str] = []
        self.arm: list[str] = []
        self.refused: str | None = None
        self._numbers()

    def _numbers(self) -> None:
        """Take out loads (`c8`, `ctx 2048`), percentiles and unknown words."""
        kept: list[Phrase] = []
        pending: tuple[str, str] | None = None
        for phrase in self.phrases:
            word = phrase.text
            if percentile := _PERCENTILE.match(word):
                self.statistic = "p50" if percentile[1] == "50" else "p" + percentile[1].replace("p", "")
            elif (
                (joined := _WITH_NUMBER.match(word)) and not phrase.meanings and self._load(*joined.groups())
            ):
                continue
            elif (bare := _NUMBER.match(word)) and kept and self._load(kept[-1].text, *bare.groups()):
                kept.pop()
            elif pending and (self._load(word, *pending) or self._load(_of_one(phrase), *pending)):
                pending = None
                self.unknown.pop()
            elif "tool" in phrase.meanings:
                self.unknown.append(word)  # a client's name tells columns apart
            elif phrase.meanings:
                kept.append(phrase)
            elif word not in ("and", "for", "in", "to"):
                self.unknown.append(word)
                before = _NUMBER.match(word)
                pending = (before[1], before[2]) if before else None
        alone = len(kept) == 1 and not self.unknown
        self.phrases = [phrase for phrase in kept if alone or not _is_letter(phrase)]

    def _load(self, word: str, digits: str, scale: str) -> bool:
        meanings = next(iter(phrases_of(word.split())), Phrase((word,), {})).meanings
        what = meanings.get("what")
        if what not in LOADS or meanings.get("side"):
            return False
        self.at[what] = float(int(digits) * _BINARY[scale])
        return True

    def _of(self, kind: str) -> list[str]:
        return [phrase.meanings[kind] for phrase in self.phrases if kind in phrase.meanings]

    def quantity(self) -> Quantity:
        """All of it put together."""
        self._statistic()
        self.arm = [p.text for p in self.phrases if "arm" in p.meanings and len(p.meanings) == 1]
        rate_s, per, over = self._per()
        what, side = self._what(rate_s, over)
        changes = [
            phrase
            for phrase in self.phrases
            if "changes" in phrase.meanings and "what" not in phrase.meanings
        ]
        if changes and not (what or "").startswith("accept"):
            self.refused = f"'{changes[0].text}': {changes[0].meanings['changes']}"
            what = None
        instrument = next(iter(self._of("instrument")), None)
        if what == "queue_time" and instrument == "client":
            what = "client_queue"
        if "interactivity" in self._of("what"):
            what, per, side = "token_rate", "request", "output"
        if what in _SIZES and self.statistic == "max" and "concurrency" in (p.text for p in self.phrases):
            self.statistic = None  # the most that the client holds open, which is what it was told to
        unit = rate_s if what in ("token_rate", "request_rate") else self._unit(what)
        return Quantity(
            name=self.name,
            what=what,
            statistic=self.statistic,
            unit=unit,
            side=side,
            per=per,
            instrument=instrument,
            at=tuple(sorted(self.at.items())),
            unknown=tuple(self.unknown),
            arm=tuple(self.arm),
            refused=self.refused,
            unused=self._elsewhere() if what is None and self.refused is None else None,
        )

    def _elsewhere(self) -> str | None:
        """Why a name that says no quantity is known all the same."""
        words = split(self.name)
        for length in (3, 2, 1):
            for at in range(len(words) - length + 1):
                text = " ".join(words[at : at + length])
                if text in elsewhere():
                    return f"'{text}': {elsewhere()[text]}"
        return None

    def _statistic(self) -> None:
        for index, phrase in enumerate(self.phrases):
            over = index and "per" in self.phrases[index - 1].meanings  # `req per min` is no minimum
            if "statistic" in phrase.meanings and not over:
                self.statistic = self.statistic or phrase.meanings["statistic"]

    def _per(self) -> tuple[str | None, str | None, str | None]:
        """(time a rate is over, subject it is of, noun that a time is per)."""
        rate: str | None = None
        subject: str | None = None
        over: str | None = None
        for index, phrase in enumerate(self.phrases):
            before = self.phrases[index - 1].meanings if index else {}
            told = "per" in before
            if "unit" in phrase.meanings and phrase.meanings["unit"] in _SECONDS:
                counted = self._counted(index - (2 if told else 1))
                if (told or counted) and not (told and index == 1):
                    rate = phrase.meanings["unit"]
            elif told and "subject" in phrase.meanings:
                subject = phrase.meanings["subject"]
            elif told and phrase.meanings.get("noun") == "request":
                subject = "request"
            elif told and "noun" in phrase.meanings:
                over = phrase.meanings["noun"]
            elif "subject" in phrase.meanings and phrase.meanings["subject"] == "request" and subject is None:
                subject = "request"
        return rate, subject, over

    def _counted(self, index: int) -> bool:
        """True where a noun stands that is counted: `tok s`, `requests s`, `throughput tok s`."""
        if index < 0:
            return False
        meanings = self.phrases[index].meanings
        told = index > 0 and "per" in self.phrases[index - 1].meanings
        return "noun" in meanings and meanings["noun"] != "step" and "what" not in meanings and not told

    def _what(self, rate_s: str | None, over: str | None) -> tuple[str | None, str | None]:
        """(quantity, side)."""
        direct = list(dict.fromkeys(self._of("what")))
        nouns, sides = self._of("noun"), list(dict.fromkeys(self._of("side")))
        if len(sides) > 1 and "both" in sides:
            sides.remove("both")
            self.statistic = self.statistic or "sum"
        side = sides[0] if len(sides) == 1 else None
        if len(sides) > 1:
            side = "both"
        if self._of("clock") or "mhz" in self._of("unit"):
            return ("memory_clock" if "memory" in self._of("part") else "sm_clock"), None
        if self._of("token_rate"):
            return "token_rate", side
        if self._of("request_rate"):
            return ("offered_rate" if "configured" in self.name.lower() else "request_rate"), None
        if direct and not (rate_s and "token" in nouns and direct[0] not in TIMES):
            return self._direct(direct, side)
        rated = rate_s is not None or bool(self._of("rate"))
        if rated and over != "step":
            return self._rate(nouns, side, rate_s)
        if over in ("token", "step") and (self._time_unit() or self._of("time")):
            return ("tpot" if over == "token" else "step"), None
        if self._of("time") or (self._time_unit() and ("step" in nouns or side in ("input", "output"))):
            return self._time(nouns, side)
        return self._count(nouns, side, over)

    def _direct(self, direct: Sequence[str], side: str | None) -> tuple[str | None, str | None]:
        if "graph" in direct and len(direct) > 1:
            return None, None  # sizes of graphs are a setting
        found = [what for what in direct if what != "time"] or list(direct)
        if "concurrency" in found and "running" in found:
            found.remove("concurrency")
        if len(found) > 1:
            self.refused = f"names {' and '.join(found[:3])} at once"
            return None, None
        what = found[0]
        if what == "temperature" and "memory" in self._of("part"):
            return None, None
        if what in ("running", "waiting", "graph") and (self._time_unit() or self._of("time")):
            return {"waiting": "queue_time"}.get(what), None
        return what, side

    def _rate(
        self, nouns: Sequence[str], side: str | None, rate_s: str | None
    ) -> tuple[str | None, str | None]:
        if "token" in nouns or (side and "request" not in nouns):
            return "token_rate", side
        if "request" in nouns:
            if rate_s is None and "rate" in split(self.name):
                return "offered_rate", None
            return "request_rate", None
        self.refused = None if rate_s or not self._of("rate") else "a throughput of what is not said"
        return None, None

    def _time(self, nouns: Sequence[str], side: str | None) -> tuple[str | None, str | None]:
        if side == "input":
            return "prefill_time", None
        if "step" in nouns:
            return "step", None
        if side == "output":
            return "decode_time", None
        if "token" in nouns:
            return "tpot", None
        named = {"latency", "latencies", "lat"} & set(split(self.name)) or "request" in nouns
        return ("e2e" if named else None), None  # a time of nothing may be the time of day

    def _count(
        self, nouns: Sequence[str], side: str | None, over: str | None
    ) -> tuple[str | None, str | None]:
        finished = self._of("count")
        if "token" in nouns:
            if over == "step":
                return "tokens_per_step", side
            if side in ("input", "output"):
                return f"{side}_tokens", side
            return ("total_tokens", side) if side else (None, None)
        if "failed" in finished:
            return "failed", None
        if "finished" in finished or "request" in nouns:
            return "requests", None
        if side in ("input", "output") and self.statistic == "sum":
            return f"{side}_tokens", side
        return None, None

    def _time_unit(self) -> bool:
        return any(unit in _SECONDS for unit in self._of("unit"))

    def _unit(self, what: str | None) -> str | None:
        units = [p.meanings["unit"] for p in self.phrases if "unit" in p.meanings]
        if what in TIMES or what in ("start", "end", "time"):
            units = [
                unit for unit in units if unit in _SECONDS and not (unit == "min" and self.statistic == "min")
            ]
        return units[0] if units else None


def _of_one(phrase: Phrase) -> str:
    """`1 user`, `8 requests`: so many at once."""
    one = phrase.meanings.get("subject") == "request" or phrase.meanings.get("noun") == "request"
    return "concurrency" if one else phrase.text


def _is_letter(phrase: Phrase) -> bool:
    """A letter such as `c` or `n` names a load where it is the whole name, or has a number."""
    return len(phrase.text) == 1 and "what" in phrase.meanings


def seconds_in(unit: str) -> float | None:
    """Seconds in one of a unit of time; None for another unit."""
    return _SECONDS.get(unit)


def is_unnamed_time(quantity: Quantity) -> bool:
    """True for a time of which is not said what it is of: `default_us` of a kernel."""
    unit = quantity.unit is not None and quantity.unit in _SECONDS
    return unit and quantity.what is None and quantity.refused is None and bool(quantity.words)

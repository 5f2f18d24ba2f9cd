"""Party: the fragments that are one run so far, and what they together say of their server."""

from collections.abc import Iterable

from stepline.evidence.metrics import EngineMetrics
from stepline.sources.runs.clocks import WIDEST_S, apart_s, in_year, moved, share
from stepline.sources.runs.fragment import Fragment, Span

SAME_START_S = 0.1
"""Exporters of one process print its start to the hundredth of a second."""
SAME_LENGTH = 0.1
"""Mean prompt and answer lengths of one data set differ by a few percent from draw to draw."""
BY_CHANCE = 0.05
"""Where a counter was read so often that its differences cover more of the counts up to the client's, one of them
meets it by chance."""
LOADED_BY_IT = 0.2
"""A log's largest batch and what its client held open differ by requests that come and go."""


class Party:
    """What may not differ inside a run is kept once; what a file reports is set beside what the others do."""

    def __init__(self, first: Fragment) -> None:
        self.members: list[Fragment] = []
        self.facts: dict[str, object] = {}
        self.add(first)

    def add(self, fragment: Fragment) -> None:
        """Take a fragment in."""
        self.members.append(fragment)
        for name, value in fragment.facts.items():
            self.facts.setdefault(name, value)

    @property
    def served(self) -> bool:
        """Whether anything here speaks of the server itself."""
        return any(
            member.kind in ("bundle", "log", "info", "scrape") or member.facts for member in self.members
        )

    def first(self, name: str) -> object:
        """The first word on a point."""
        return next((v for member in self.members if (v := getattr(member, name)) is not None), None)

    @property
    def models(self) -> frozenset[str]:
        """Names of the model, as the server's own files give them; else as its clients do."""
        own = [member.models for member in self.members if member.kind in ("bundle", "log", "info", "scrape")]
        return frozenset().union(*(own or [member.models for member in self.members]))

    def excludes(self, other: Fragment, shift_s: float, year: int | None) -> str | None:
        """Why a fragment cannot be of this run; None where nothing speaks against it."""
        for name, value in other.facts.items():
            if name in self.facts and self.facts[name] != value:
                return f"{name} is {self.facts[name]} here and {value} there"
        for name in ("gpu", "seed", "port"):
            mine, theirs = self.first(name), getattr(other, name)
            if mine is not None and theirs is not None and mine != theirs:
                return f"{name} is {mine} here and {theirs} there"
        began = [member.process_start_s for member in self.members if member.process_start_s is not None]
        if (
            began
            and other.process_start_s is not None
            and abs(began[0] - other.process_start_s) > SAME_START_S
        ):
            return "the processes began at different times"
        if self.models and other.models and not self.models & other.models:
            return f"the model is {min(self.models)} here and {min(other.models)} there"
        return (
            self._other_settings(other) or self._other_time(other, shift_s, year) or self._other_client(other)
        )

    def _other_settings(self, other: Fragment) -> str | None:
        """Two lists of all settings in force are of one start only where every setting is the same.

        Where nothing tells a start (no seed, no time) two equal lists in two folders are two captures of two starts.
        """
        if other.kind != "info" or other.arguments is None:
            return None
        for member in self.members:
            if member.kind != "info" or member.arguments is None:
                continue
            for name in sorted(set(member.arguments) & set(other.arguments)):
                if member.arguments[name] != other.arguments[name]:
                    return f"{name} is {member.arguments[name]} here and {other.arguments[name]} there"
            if set(member.arguments) != set(other.arguments):
                return "one list of settings has more than the other"
            if member.seed is None and member.folder != other.folder:
                return "settings were captured twice, in two folders"
        return None

    def _other_time(self, other: Fragment, shift_s: float, year: int | None) -> str | None:
        """A log covers its server's life: what lies more than any time zone away from it is of another."""
        for log, told in (*((m, other) for m in self.members), *((other, m) for m in self.members)):
            if log.kind != "log" or log.local is None:
                continue
            known = told.clock or told.local
            if known is None or told.kind == "log":
                continue
            if apart_s(in_year(moved(log.local, shift_s), year), in_year(known, year)) > WIDEST_S:
                return "their times lie further apart than time zones do"
        return None

    def _other_client(self, other: Fragment) -> str | None:
        """Results of two tools, protocols, arms, or (where no server is known) two workloads are two runs."""
        if other.kind != "client":
            return None
        for member in self.members:
            if member.kind != "client":
                continue
            if reason := other_client(member, other, served=self.served or bool(other.facts)):
                return reason
        return None

    def likeness(self, other: Fragment, shift_s: float, year: int | None) -> float:
        """How much of what both report agrees: the more the surer, zero where nothing does.

        Of settings those count that the first member tells, not those put to it since: else runs would draw files to
        them by having many.
        """
        seed = self.members[0]
        score = 0.0
        if other.seed is not None and seed.seed == other.seed:
            score += 8
        if other.process_start_s is not None and seed.process_start_s is not None:
            score += 8
        score += 6 * self._time_shared(other, shift_s, year)
        score += 6 * self._counted(other)
        score += 2 * self._loaded(other)
        score += float(other.port is not None and self.first("port") == other.port)
        score += float(bool(self.models & other.models))
        return score + 0.5 * sum(1 for name in other.facts if name in seed.facts)

    def _time_shared(self, other: Fragment, shift_s: float, year: int | None) -> float:
        """The largest share of the fragment's time that lies in the time of a member, or the other way round."""
        mine = [span for member in self.members for span in _spans(member, shift_s, year)]
        return max(
            (share(whole, part) for part in _spans(other, shift_s, year) for whole in mine), default=0.0
        )

    def _counted(self, other: Fragment) -> float:
        """1 where the server's counter of requests grew by what the client counted (or the other way round)."""
        if other.kind not in ("client", "scrape"):
            return 0.0
        clients = [other] if other.kind == "client" else [m for m in self.members if m.kind == "client"]
        scraped = self.members if other.kind == "client" else [other]
        counts = sorted({s.finished_requests for s in _scrapes(scraped) if s.finished_requests is not None})
        grown = {after - before for at, before in enumerate(counts[:200]) for after in counts[at + 1 : 200]}
        wanted = [level.requests for client in clients for level in client.run.levels if level.requests]
        return float(any(one in grown and len(grown) <= BY_CHANCE * one for one in wanted))

    def _loaded(self, other: Fragment) -> float:
        """1 where the log's largest batch, the queue included, is what a client held open."""
        if other.kind not in ("client", "log"):
            return 0.0
        logs = [other] if other.kind == "log" else [m for m in self.members if m.kind == "log"]
        clients = [other] if other.kind == "client" else [m for m in self.members if m.kind == "client"]
        peaks = [max((r.running + (r.queued or 0) for r in log.run.decodes), default=0) for log in logs]
        held = [
            max((level.concurrency or 0.0 for level in client.run.levels), default=0.0) for client in clients
        ]
        return float(
            any(
                peak and most and abs(peak - most) <= LOADED_BY_IT * most
                for peak in peaks
                for most in held[-1:]
            )
        )


def other_client(one: Fragment, other: Fragment, *, served: bool) -> str | None:
    """Why two client results cannot be of one run."""
    ours, theirs = one.run.levels, other.run.levels
    if not ours or not theirs:
        return None
    mine, yours = ours[0], theirs[0]
    if mine.served_with != yours.served_with:
        return f"the server runs with {mine.served_with} here and {yours.served_with} there"
    same_tool = mine.tool == yours.tool
    for name in ("tool", "backend", "url"):
        a, b = getattr(mine, name), getattr(yours, name)
        if a and b and a != b and (not served or (same_tool and name != "url")):
            return f"{name} is {a} here and {b} there"
    if served:
        return None
    if mine.workload and yours.workload and mine.workload != yours.workload:
        return f"the workload is {mine.workload} here and {yours.workload} there"
    for name, what in (("input_tokens", "prompts"), ("output_tokens", "answers")):
        a, b = _mean(ours, name), _mean(theirs, name)
        if a and b and abs(a - b) > SAME_LENGTH * max(a, b):
            return f"{what} have {a:,.0f} tokens here and {b:,.0f} there"
    return None


def _mean(levels: Iterable[object], name: str) -> float | None:
    known = [value for level in levels if (value := getattr(level, name)) is not None]
    return sum(known) / len(known) if known else None


def _spans(fragment: Fragment, shift_s: float, year: int | None) -> list[Span]:
    if fragment.clock is not None:
        return [fragment.clock]
    if fragment.local is None:
        return []
    own = in_year(fragment.local, year)
    return [moved(own, shift_s) if fragment.kind == "log" else own]


def _scrapes(fragments: Iterable[Fragment]) -> list[EngineMetrics]:
    return [scrape for fragment in fragments for scrape in fragment.run.metrics]

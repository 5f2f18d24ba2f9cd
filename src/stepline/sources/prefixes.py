"""Who wrote a line of a gathered log: the prefix that a collector puts before each, and the line without it.

kubectl (`logs --prefix`) and stern write pod and container, docker compose the service, journald host and unit, and
`tail` over several files a heading. A number of a rank before a colon (srun --label) tells ranks of one job and stays.
"""

import re

_KUBECTL = re.compile(r"\[(pod/[^\]\s]{1,253})\] ?")
_COMPOSE = re.compile(r"([A-Za-z0-9][\w.-]{0,127}) *\| ?(?=\S|$)")
_STERN = re.compile(
    r"(?:\+ |- )?([a-z0-9][a-z0-9.-]{0,252}-[a-z0-9]{1,10}) ([a-z0-9][a-z0-9-]{0,62}) (?:[›│|] )?"
)
_JOURNALD = re.compile(
    r"(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|20\d\d-\d\d-\d\dT[\d:.,+-]+Z?) ([\w.-]{1,253} [\w@.\\-]{1,253})"
    r"\[\d{1,10}\]: ?"
)
_TAIL = re.compile(r"==> (.{1,1024}) <==$")
_RULES = (_KUBECTL, _JOURNALD, _COMPOSE, _STERN)
LOOKED_AT = 2_000
MOST = 0.9
"""A collector prefixes every line; a few may be the shell's own."""
MAX_SOURCES = 64


class Sources:
    """Tells the source of each line of one log, by the one prefix that nearly all its opening lines have."""

    def __init__(self, opening: str) -> None:
        lines = [line for line in opening.split("\n")[:LOOKED_AT] if line.strip()]
        self._rule = next((rule for rule in _RULES if _has(rule, lines)), None)
        self._headed = self._rule is None and any(_TAIL.match(line) for line in lines)
        self._current: str | None = None
        self._known: set[str] = set()

    @property
    def many(self) -> bool:
        """Whether lines name their source at all."""
        return self._rule is not None or self._headed

    def of(self, line: str) -> tuple[str | None, str]:
        """(source, the line without its prefix); a line without a prefix continues the one before it."""
        if self._headed:
            if heading := _TAIL.match(line):
                self._current = self._admitted(heading[1])
                return self._current, ""
            return self._current, line
        found = self._rule.match(line) if self._rule is not None else None
        if found is None:
            return self._current, line
        self._current = self._admitted(" ".join(part for part in found.groups() if part))
        return self._current, line[found.end() :]

    def _admitted(self, source: str) -> str | None:
        if source not in self._known and len(self._known) >= MAX_SOURCES:
            return self._current
        self._known.add(source)
        return source


def _has(rule: re.Pattern[str], lines: list[str]) -> bool:
    return len(lines) > 1 and sum(1 for line in lines if rule.match(line)) >= MOST * len(lines)

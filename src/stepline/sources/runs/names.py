"""What names of folders and files hint at: a last resort, where nothing inside the files decides."""

import re
from collections.abc import Sequence
from pathlib import PurePath

from stepline.sources.runs.fragment import Fragment
from stepline.sources.runs.party import Party

_PARTS = re.compile(r"[^A-Za-z0-9]+")
FOREIGN = frozenset(
    {"log", "json", "jsonl", "csv", "txt", "gz", "server", "client", "metrics", "config", "info", "gpu"}
)
"""Words of kinds of files, not of runs."""


def nearest(parties: Sequence[Party], fragment: Fragment) -> Party | None:
    """The one party whose files lie nearest by folder, then by the words of their names; None where two do."""
    for measure in (_same_folders, _same_words):
        scores = [max(measure(member.file, fragment.file) for member in party.members) for party in parties]
        best = max(scores)
        if best > 0 and scores.count(best) == 1:
            return parties[scores.index(best)]
        if best > 0:
            parties = [party for party, score in zip(parties, scores, strict=True) if score == best]
    return None


def beside(one: str, other: str) -> bool:
    """True where two files lie in folders beside each other, neither of them inside the other's."""
    ours, theirs = PurePath(one).parent, PurePath(other).parent
    return ours != theirs and not ours.is_relative_to(theirs) and not theirs.is_relative_to(ours)


def foreign(party: Party, fragment: Fragment) -> bool:
    """True where all files of a run begin with one word and this one, in the same folder, with another."""
    heads = {_head(member.file) for member in party.members}
    own = _head(fragment.file)
    return (
        len(party.members) > 1
        and len(heads) == 1
        and None not in heads
        and own is not None
        and own not in heads
    )


def _head(file: str) -> str | None:
    return next(iter(_words(file)), None)


def _same_folders(one: str, other: str) -> float:
    """How many folders both lie in, from the top; the same folder counts one more."""
    ours, theirs = PurePath(one).parent.parts, PurePath(other).parent.parts
    shared = 0
    for a, b in zip(ours, theirs, strict=False):
        if a != b:
            break
        shared += 1
    return shared + (1 if ours == theirs and ours else 0)


def _same_words(one: str, other: str) -> float:
    """How many words both names begin with."""
    shared = 0
    for a, b in zip(_words(one), _words(other), strict=False):
        if a != b:
            break
        shared += 1
    return float(shared)


def _words(file: str) -> list[str]:
    return [word for word in _PARTS.split(PurePath(file).name.lower()) if word and word not in FOREIGN]

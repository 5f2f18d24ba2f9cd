"""What is sent: the head of a request, and prompts that no cache has seen."""

import os
import random
from collections.abc import Callable

import numpy as np

from stepline.errors import UsageError
from stepline.sources.load.dialect import Ask, Dialect
from stepline.sources.load.level import Address, LevelPlan

FIRST_ID = 16
"""Ids below are often special tokens, which engines may refuse or treat apart."""
WORDS = (
    *("time", "year", "people", "way", "day", "man", "thing", "woman", "life", "child", "world", "school"),
    *("state", "family", "student", "group", "country", "problem", "hand", "part", "place", "case", "week"),
    *(
        "company",
        "system",
        "program",
        "question",
        "work",
        "number",
        "night",
        "point",
        "home",
        "water",
        "room",
    ),
    *("mother", "area", "money", "story", "fact", "month", "lot", "right", "study", "book", "eye", "job"),
    *("word", "business", "issue", "side", "kind", "head", "house", "service", "friend", "father", "power"),
)
"""Common nouns: about one token each in any vocabulary with English text."""


def head(address: Address, dialect: Dialect) -> bytes:
    """Everything of a request up to its length.

    Raises:
        UsageError: a header holds a line end.
    """
    host = f"[{address.host}]" if ":" in address.host and not address.host.startswith("[") else address.host
    lines = [
        f"POST {address.prefix}{dialect.path} HTTP/1.1",
        f"Host: {host}:{address.port}",
        "User-Agent: stepline",
        "Content-Type: application/json",
        "Accept: text/event-stream",
        *(f"{name}: {value}" for name, value in address.headers),
    ]
    if any("\r" in line or "\n" in line for line in lines):
        raise UsageError("a header must not hold a line end")
    return "\r\n".join([*lines, "Content-Length: "]).encode("utf-8")


def asker(plan: LevelPlan, *, as_ids: bool) -> Callable[[int], Ask]:
    """A maker of asks by the tokens to answer.

    The shared opening follows from `plan.seed`, so that every level with that seed opens alike; the rest is
    drawn from the system's entropy, so that no repeat of a level can meet its own prompts in a warm cache.
    """
    unique = np.random.default_rng(int.from_bytes(os.urandom(16)))
    shared_count = min(plan.shared_prefix_tokens, plan.input_tokens)
    low = min(FIRST_ID, plan.vocabulary - 1)
    own_count = plan.input_tokens - shared_count
    opening = random.Random(plan.seed)  # noqa: S311 - load, not cryptography
    if as_ids:
        shared_ids = [opening.randrange(low, plan.vocabulary) for _ in range(shared_count)]

        def by_ids(output_tokens: int) -> Ask:
            own = unique.integers(low, plan.vocabulary, own_count).tolist()
            return Ask(
                prompt_ids=shared_ids + own,
                output_tokens=output_tokens,
                temperature=plan.temperature,
                sampling=plan.sampling,
            )

        return by_ids
    shared_words = [opening.choice(WORDS) for _ in range(shared_count)]

    def by_words(output_tokens: int) -> Ask:
        own = [WORDS[index] for index in unique.integers(0, len(WORDS), own_count).tolist()]
        return Ask(
            prompt_text=" ".join(shared_words + own),
            output_tokens=output_tokens,
            temperature=plan.temperature,
            sampling=plan.sampling,
        )

    return by_words

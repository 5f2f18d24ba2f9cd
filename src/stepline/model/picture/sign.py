"""What is asked of a frozen record is worked out once: the record keeps the answer, and knows none of its questions.

Answers lie beside the fields, by the place and name of the function that was asked: outside equality and
serialisation, and not in a changed copy. So a question stays a pure function, called as any other, and calling it
anew costs nothing.
"""

import functools
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

import msgspec

_Record = TypeVar("_Record", bound=msgspec.Struct)
_Rest = ParamSpec("_Rest")
_Answer = TypeVar("_Answer")

SIGNS: set[str] = set()
"""Every question declared so far: "stepline.model.signs.host.gpu_busy"."""


def sign(
    question: Callable[Concatenate[_Record, _Rest], _Answer],
) -> Callable[Concatenate[_Record, _Rest], _Answer]:
    """Declare a pure function of a record and of hashable values: the record keeps each answer it gave.

    The record is a frozen struct with `dict=True`, and answers are frozen too.
    """
    place = f"{question.__module__}.{question.__qualname__}"
    SIGNS.add(place)

    @functools.wraps(question)
    def ask(record: _Record, /, *args: _Rest.args, **kwargs: _Rest.kwargs) -> _Answer:
        answers: dict[object, _Answer] = record.__dict__.setdefault("answers", {})
        key = (place, args, tuple(sorted(kwargs.items())))
        if key not in answers:
            answers[key] = question(record, *args, **kwargs)
        return answers[key]

    return ask

"""The step law of a table of running batch and step time, and what it predicts."""

import msgspec

from stepline.errors import Inconclusive, UsageError
from stepline.model.measure.law import Interval, NoLaw, StepLaw
from stepline.tasks.picture import Paths, picture_of


class Prediction(msgspec.Struct, frozen=True, kw_only=True):
    """The step at one batch."""

    running: float
    step_ms: float
    tok_s: float
    interval: Interval | None
    """Of the step in ms at 95 %; None where two batches gave the law."""


class Fitted(msgspec.Struct, frozen=True, kw_only=True):
    """The law and its predictions."""

    law: StepLaw
    ceiling_tok_s: float | None
    """No batch exceeds it while the law holds; None where the step does not grow."""
    predictions: tuple[Prediction, ...]


def fit(table: Paths, running: tuple[float, ...] = ()) -> Fitted:
    """Fit, and predict the step at the running batches asked for.

    Raises:
        UsageError: a batch is no number above zero, or the table does not exist.
        UnreadableEvidence: the table cannot be read.
        Inconclusive: the points give no law.
    """
    if not all(0 < batch < float("inf") for batch in running):
        words = ",".join(f"{batch:g}" for batch in running)
        raise UsageError(f"--predict {words}: give running batches as numbers above zero, such as 8,16,64")
    law = picture_of(table).law
    if isinstance(law, NoLaw):
        raise Inconclusive(f"no law: {law.reason}; needs {law.needs}")
    predictions = tuple(
        Prediction(
            running=batch,
            step_ms=(step_ms := law.step_ms(batch)),
            tok_s=1000 * batch / step_ms,
            interval=law.step_interval(batch),
        )
        for batch in running
    )
    return Fitted(law=law, ceiling_tok_s=law.ceiling_tok_s, predictions=predictions)

"""What step times were measured with; the values are the words of reports."""

from enum import StrEnum


class Instrument(StrEnum):
    """One way to know a decode step."""

    WINDOW = "decode windows (log)"
    WINDOW_FILLED = "decode lines (log), prefill regressed out where no window is free of it"
    STRETCH = "streams of one batch (client)"
    TPOT = "time per token (client)"
    INTERVAL = "means over a fixed time (log)"
    MIXED = "decode lines with prefill inside (log)"
    CLIENT_GAP = "median gap between tokens (client)"
    CLIENT_RATE = "engine's batch over the client's rate"
    RECORDED = "engine's own step times"
    STATED = "step times as stated"
    STATED_RATE = "rate as stated for a running batch"
    COVERED = "steps within the graphs"
    """The steps of another instrument, of batches with a CUDA graph alone."""

    @property
    def holds_prefill(self) -> bool:
        """True of means with prefill and changes of batch inside: the step is at most what they say."""
        return self in (
            Instrument.INTERVAL,
            Instrument.TPOT,
            Instrument.CLIENT_RATE,
            Instrument.MIXED,
        )

    @property
    def of_engine(self) -> bool:
        """True where engines measure differently, so that two of them are not compared."""
        return self in (Instrument.WINDOW, Instrument.RECORDED)

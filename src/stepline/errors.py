"""Every error stepline raises on purpose.

SteplineError
├── UsageError            the command line or call cannot be right
├── UnreadableEvidence    a file or reply cannot be read as what it claims to be
├── UnknownFact           a model, GPU, quantisation or layout that no data file describes
└── Inconclusive          something was read, but too little for any verdict

A message is one sentence that names the file, line or field and the way out. `cli.main` catches
`SteplineError` once, prints the message and leaves with `exit_code`.
"""

from pathlib import Path


class SteplineError(Exception):
    """Base of all errors meant for a reader; `exit_code` is what the command leaves with."""

    exit_code = 2


class UsageError(SteplineError):
    """The command line or call cannot be right."""


class UnreadableEvidence(SteplineError):
    """A file or reply cannot be read as what it claims to be."""


class UnknownFact(SteplineError):
    """A model, GPU, quantisation or layout that no data file describes."""


class Inconclusive(SteplineError):
    """Something was read, but too little for any verdict."""

    exit_code = 3


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a recording that had measured something: `folder` keeps it, and can be diagnosed."""

    def __init__(self, folder: Path) -> None:
        super().__init__(f"what was recorded is kept; next: stepline diagnose {folder}")
        self.folder = folder

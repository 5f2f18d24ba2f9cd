"""How a task tells how far it is. `cli` has one for a terminal; without one nothing is said."""


class Progress:
    """What tasks tell; this one keeps silent."""

    def tell(self, *lines: str) -> None:
        """Something worth a line each."""

    def file(self, name: str) -> None:
        """A file of evidence is about to be read."""

    def bytes(self, done: int, total: int) -> None:
        """So many bytes of all evidence files are read."""

    def trace_bytes(self, name: str, done: int) -> None:
        """So many uncompressed bytes of a trace are read."""

    def traces(self, done: int, total: int) -> None:
        """So many of all traces are condensed."""

    def end(self) -> None:
        """Reading is over, whether or not it succeeded."""


SILENT = Progress()

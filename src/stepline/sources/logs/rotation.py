"""The order of rotated logs: `server.log.2.gz` is older than `server.log.1`, and that than `server.log`."""

import re

_PACKED = re.compile(r"\.(?:gz|zst|zstd)$")
_NUMBERED = re.compile(r"\.(\d{1,4})$")
_DATED = re.compile(r"[-._](20\d\d-?[01]\d-?[0-3]\d(?:[-_T.]?\d{2,6}(?:[-:]\d\d)*)?)$")


def order(name: str) -> tuple[str, int, int, str]:
    """A key that sorts the parts of one log together, the oldest first and the live one last."""
    bare = _PACKED.sub("", name)
    if numbered := _NUMBERED.search(bare):
        return bare[: numbered.start()], 0, -int(numbered[1]), name
    if dated := _DATED.search(bare):
        return bare[: dated.start()], 0, 0, dated[1]
    return bare, 1, 0, name

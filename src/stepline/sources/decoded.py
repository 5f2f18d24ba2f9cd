"""Bytes of a text file as text: UTF-8 with or without a mark, or UTF-16 as PowerShell writes it."""

import codecs

_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))


def text_of(content: bytes) -> str:
    """The text, without a byte order mark; what is no text of its encoding is replaced."""
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return content[len(mark) :].decode(encoding, "replace")
    if (
        content[1:2] == b"\0" and content[3:4] == b"\0"
    ):  # UTF-16 without a mark: Latin letters have a zero byte each
        return content.decode("utf-16-le", "replace")
    return content.decode("utf-8", "replace")

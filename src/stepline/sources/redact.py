"""Takes secrets out of text before it is kept. A key that was never stored cannot leak."""

import re

_SECRET = re.compile(
    r"""(?ix)
    (?P<name> (?:admin[_-])? api[_-]?key | authorization | password | secret | (?:access|hf)[_-]?token )
    (?P<gap> ['"]? \s* [=:\s] \s* ['"]? (?:bearer\s+)? )
    (?P<value> (?!None\b) [^\s'",;)}]+ )
    """
)
_TOKEN = re.compile(r"\b(?:sk-|hf_|nvapi-|ghp_)[A-Za-z0-9_-]{8,}|(?i:bearer)\s+[A-Za-z0-9._~+/-]{8,}=*")


def redact(text: str) -> str:
    """Replace every key, token and password by `[redacted]`."""
    text = _SECRET.sub(lambda m: f"{m['name']}{m['gap']}[redacted]", text)
    return _TOKEN.sub("[redacted]", text)

"""Takes secrets out of text before it is kept. A key that was never stored cannot leak."""

import re
from collections.abc import Sequence

_SECRET = re.compile(
    r"""(?ix)
    (?P<name> (?:admin[_-])? api[_-]?key | authorization | [a-z_]*password | [a-z_]*secret[a-z_]*
        | (?:access|hf|auth|bearer|refresh|hub)[_-]?token )
    (?P<gap> ['"]? \s* [=:\s] \s* ['"]? (?:(?:bearer|basic)\s+)? )
    (?P<value> (?!None\b|null\b|\*\*\*) [^\s'",;)}]+ )
    """
)
_TOKEN = re.compile(
    r"\b(?:sk-|hf_|nvapi-|ghp_|github_pat_|glpat-|AKIA|xox[bp]-)[A-Za-z0-9_-]{8,}"
    r"|(?i:bearer)\s+[A-Za-z0-9._~+/-]{8,}=*"
    r"|(?<=://)[^\s/:@'\"]+:[^\s/@'\"]+(?=@)"
)


HALF = 6
"""Characters of a secret that betray it, where a cut left only its beginning."""


def redact(text: str, secrets: Sequence[str] = ()) -> str:
    """Replace every key, token and password by `[redacted]`, and these secrets wherever they stand."""
    for secret in secrets:
        text = text.replace(secret, "[redacted]")
        cut = next((n for n in range(len(secret) - 1, HALF - 1, -1) if text.endswith(secret[:n])), 0)
        text = text[: len(text) - cut] + "[redacted]" if cut else text
    text = _SECRET.sub(lambda m: f"{m['name']}{m['gap']}[redacted]", text)
    return _TOKEN.sub("[redacted]", text)


def excerpt(text: str, limit: int = 400) -> str:
    """The opening of a line as it may be kept: redacted before it is cut, so that no cut hides half a key."""
    return redact(text.strip()[: 4 * limit])[:limit]

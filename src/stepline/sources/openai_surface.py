"""Any server with the OpenAI routes: it can be loaded, and says nothing about itself."""

from stepline.sources.http import Http, Unreachable
from stepline.sources.load.dialect import Ask
from stepline.sources.openai_dialect import Completions
from stepline.sources.surface import Found, first_model


def find(http: Http) -> Found | None:
    """Anything that lists a model; the honest minimum.

    Raises:
        Unreachable: nobody answers at all.
    """
    model = first_model(http)
    if model is None:
        return None
    return Found(
        engine=None,
        model=model["id"],
        dialect=_completions(model["id"], rich=False),
        metrics=http.get("/metrics").ok,
        lacks=("the engine's own state: this server is known by its OpenAI routes only",),
    )


def settle(http: Http, model: str) -> Completions:
    """Send one two-token request with every extension; a server that refuses them is asked plainly."""
    rich = _completions(model, rich=True)
    try:
        body = rich.body(Ask(prompt_text="one two three", output_tokens=2))
        tried = http.post_bytes(rich.path, body, timeout_s=5.0)
    except Unreachable:
        return _completions(model, rich=False)  # the load will show what is wrong
    return _completions(model, rich=tried.ok)


def _completions(model: str, *, rich: bool) -> Completions:
    return Completions(model, takes_ids=False, running_usage=rich, extensions=rich)

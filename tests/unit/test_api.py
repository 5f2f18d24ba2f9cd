"""The Python surface: `import stepline`."""

from importlib import resources

import pytest

import stepline
from stepline.errors import UnknownFact


def test_what_is_exported_is_what_is_promised():
    assert sorted(stepline.__all__) == ["__version__", "diagnose", "read", "record", "roofline"]


def test_read_and_diagnose():
    run = stepline.read([str(resources.files("stepline.lab").joinpath("recorded", "batch-cap"))])
    assert stepline.diagnose(run, gpu="h200").findings[0].code == "S201"


def test_roofline():
    floor = stepline.roofline("llama-3.1-8b", "h200", batch=64, context_tokens=320)
    assert floor.total_ms == pytest.approx(3.69, rel=0.02)
    with pytest.raises(UnknownFact):
        stepline.roofline("llama-3.1-8b", "h2000", batch=1, context_tokens=1)

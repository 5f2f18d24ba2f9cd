import msgspec

from stepline.findings.diagnose import diagnose
from stepline.model.picture.assess import assess
from stepline.model.picture.picture import Setup
from stepline.report.bounded import ITEMS, TEXT, bounded
from stepline.report.html import LARGEST, page
from stepline.report.markdown import LONGEST, markdown
from stepline.sources.read import read_one_run as read
from tests.captures import RECORDED


def _diagnosis():
    return diagnose(assess(read([RECORDED / "founding-case"]), Setup(gpu="h200")))


def test_an_honest_diagnosis_is_left_as_it_is():
    diagnosis = _diagnosis()
    assert bounded(diagnosis) == diagnosis


def _worst(value):
    """Every string longest and dearest to escape, every list that evidence can lengthen longest."""
    if isinstance(value, str):
        return "&" * (2 * TEXT)
    if isinstance(value, dict):
        return {
            key: content if key in ("status", "used", "kind") else _worst(content)
            for key, content in value.items()
        }
    if isinstance(value, list | tuple):
        return [_worst(value[0])] * (10 * ITEMS) if value else []
    return value


def test_the_worst_diagnosis_is_a_page_and_an_issue_of_bounded_size():
    diagnosis = _diagnosis()
    whole = msgspec.to_builtins(diagnosis)
    worst = {
        key: content if key in ("findings", "timeline") else _worst(content) for key, content in whole.items()
    }
    worst["provenance"]["samples_per_level"] = {}
    hostile = msgspec.convert(worst, type(diagnosis))
    cut = bounded(hostile)
    assert len(cut.provenance.read) == ITEMS
    assert cut.provenance.read[-1] == f"and {9 * ITEMS + 1} more"
    assert len(cut.verdict) == TEXT + 1
    assert len(page(hostile).encode()) <= LARGEST
    assert len(markdown(hostile)) <= LONGEST + 100


def test_signs_that_cannot_be_seen_become_spaces():
    diagnosis = msgspec.structs.replace(_diagnosis(), verdict="a\x1b[2J\r\nb\u202ec\ud800d\u200be")
    assert bounded(diagnosis).verdict == "a [2J b c d e"
    assert "A [2J b c d e." in page(diagnosis)

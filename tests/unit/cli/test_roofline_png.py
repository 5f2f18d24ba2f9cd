import argparse
import sys
from pathlib import Path

import pytest

from stepline.cli import roofline
from stepline.errors import UsageError
from stepline.model.roofline.table import Roofline
from stepline.report.roofline.png import picture
from stepline.tasks.roofline import roofline as floors

V4 = ("deepseek-v4-flash", "--gpu", "rtx-pro-6000", "--tp", "4", "--context", "8192")


def arguments(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    roofline.add_arguments(parser)
    return parser.parse_args(words)


def floors_of(*words: str) -> Roofline:
    return floors(roofline.roofline_request(arguments(*words)))


def test_the_picture_is_a_png_beside_the_other_outputs(tmp_path: Path) -> None:
    file, page = tmp_path / "roofline.png", tmp_path / "roofline.html"
    assert (
        roofline.run(arguments("llama-3.1-8b", "--gpu", "h200", "--png", str(file), "--html", str(page))) == 0
    )
    content = file.read_bytes()
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    assert int.from_bytes(content[16:20]) == 1800
    assert page.exists()


def test_the_picture_shows_lines_components_and_the_change() -> None:
    base = floors_of(*(*V4, "--batch", "1,16,64"))
    changed = floors_of(*(*V4, "--batch", "1,16,64", "--context-length", "1048576"))
    left, right = picture(base, base, changed, ["context-length=1048576"]).axes
    _, said = left.get_legend_handles_labels()
    assert said == [
        "strict",
        "expected",
        "expected, context-length=1048576",
        "expected if work follows 1,048,576 tokens",
    ]
    heights = {line.get_label(): list(line.get_ydata()) for line in left.lines}
    assert heights["expected"] == [point.expected.total_ms for point in base.points]
    assert heights[said[3]][-1] == changed.points[-1].expected.configured_total_ms
    _, parts = right.get_legend_handles_labels()
    assert {"moe experts", "indexer", "all-reduces"} <= set(parts)
    assert "embedding" not in parts, "too thin to be seen"


def test_a_calibrated_gpu_shows_the_typical_band() -> None:
    base = floors_of(*("llama-3.1-8b", "--gpu", "h200", "--batch", "1,64", "--context", "2000"))
    left, _ = picture(base, base, None, []).axes
    assert "typical" in left.get_legend_handles_labels()[1]
    assert len(left.collections) == 1


def test_the_limit_of_memory_is_marked() -> None:
    base = floors_of(*("llama-3.1-8b", "--gpu", "h200", "--batch", "1,1024", "--context", "2000"))
    left, _ = picture(base, base, None, []).axes
    assert [text.get_text().strip() for text in left.texts] == ["memory holds 456"]


def test_without_matplotlib_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(UsageError, match=r"pip install 'stepline\[png\]'"):
        roofline.run(arguments("llama-3.1-8b", "--gpu", "h200", "--png", "x.png"))


@pytest.mark.parametrize("name", ["nowhere/x.png", "x.nopicture"])
def test_a_picture_that_cannot_be_written_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="cannot be written"):
        roofline.run(arguments("llama-3.1-8b", "--gpu", "h200", "--json", "-", "--png", str(tmp_path / name)))

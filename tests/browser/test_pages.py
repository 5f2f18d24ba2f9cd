"""Pages in a real browser: nothing on the console, no request, no serious barrier by axe-core, nothing too wide.

Run `pytest tests/browser --shots FOLDER` and look at the pictures: what a newcomer sees first no rule can judge.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from stepline.cli.main import main
from tests.captures import DATA, RECORDED
from tests.unit.report import hostile

PACKAGES = ("axe-core@4.14.1", "playwright-core@1.65.1")
LOOK = Path(__file__).parent / "look.js"
CAPTURES = {
    "batch-cap": RECORDED / "batch-cap",
    "founding-case": RECORDED / "founding-case",
    "healthy": DATA / "h200-sglang" / "healthy",
    "nograph": DATA / "h200-sglang" / "nograph",
    "eager-kernels": DATA / "h200-live" / "nograph",
    "two-ranks": DATA / "h200-live" / "tp2_nop2p",
    "kv-splits": DATA / "h200-sglang-2" / "kv_splits1_24k",
}
pytestmark = pytest.mark.browser


def _found(*names):
    return next((path for name in names if name and (path := shutil.which(name))), None)


@pytest.fixture(scope="session")
def look(tmp_path_factory, request):
    """A function from pages to what Chromium and axe-core say of them."""
    chromium = _found(os.environ.get("CHROMIUM"), "chromium", "chromium-browser", "google-chrome")
    node, npm = _found("node"), _found("npm")
    if chromium is None or node is None or npm is None:
        pytest.skip("needs Chromium, node and npm")
    folder = tmp_path_factory.mktemp("node")
    asked = [npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", *PACKAGES]
    try:
        subprocess.run(asked, cwd=folder, check=True, capture_output=True, timeout=120)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        pytest.skip("npm could not fetch axe-core and playwright-core")
    shots = request.config.getoption("--shots") or "-"
    if shots != "-":
        Path(shots).mkdir(parents=True, exist_ok=True)
        shots = str(Path(shots).resolve())

    def looking(*pages):
        asked = [node, str(LOOK), chromium, shots, *map(str, pages)]
        done = subprocess.run(asked, cwd=folder, capture_output=True, text=True, timeout=900, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return looking


def _page(folder, out):
    assert main(["diagnose", str(folder), "--gpu", "h200", "--quiet", "--html", str(out)]) == 0
    return out


def test_reports_are_sound_in_a_browser(look, tmp_path):
    pages = [_page(folder, tmp_path / f"{name}.html") for name, folder in CAPTURES.items()]
    evidence = tmp_path / "evidence"
    evidence.mkdir()
    pages.append(_page(hostile.write(evidence), tmp_path / "hostile.html"))
    results = look(*pages)
    assert len(results) == 2 * len(pages)
    assert [result for result in results if result["problems"]] == []


def test_the_check_sees_what_it_is_there_for(look, tmp_path):
    bad = tmp_path / "bad.html"
    bad.write_text(
        "<title>x</title><body style='width:3000px'><p style='color:#eee;background:#fff'>pale</p>"
        "<img src='http://192.0.2.1/x.png'><script>console.error('loud')</script>"
    )
    said = " ".join(problem for result in look(bad) for problem in result["problems"])
    for expected in ("loud", "192.0.2.1", "color-contrast", "image-alt", "sideways", "1 scripts"):
        assert expected in said

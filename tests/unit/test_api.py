"""The Python surface: `import stepline`."""

import inspect
import json
import subprocess
import sys
from importlib import resources

import msgspec
import pytest

import stepline
from stepline.cli.main import main
from stepline.errors import UnknownFact, UsageError
from stepline.lab.real.matrix import Load
from stepline.report.jsonout import to_json
from stepline.tasks.compare import CompareRequest
from stepline.tasks.live import LiveRequest, levels, seconds
from stepline.tasks.roofline import RooflineRequest
from stepline.tasks.setup import Settings, SetupRequest
from tests.captures import DATA

H200 = DATA / "h200-sglang-2"


def defaults(function: object) -> dict[str, object]:
    """What a call takes where nothing is said."""
    parameters = inspect.signature(function).parameters.values()
    return {each.name: each.default for each in parameters if each.default is not inspect.Parameter.empty}


def test_what_is_exported_is_what_is_promised():
    assert sorted(stepline.__all__) == ["__version__", "compare", "diagnose", "read", "record", "roofline"]


def test_read_and_diagnose():
    evidence = stepline.read(str(resources.files("stepline.lab").joinpath("recorded", "batch-cap")))
    assert stepline.diagnose(evidence, gpu="h200").findings[0].code == "S201"


def test_roofline():
    floor = stepline.roofline("llama-3.1-8b", "h200", batch=64, context_tokens=320)
    assert floor.total_ms == pytest.approx(3.69, rel=0.02)
    with pytest.raises(UnknownFact):
        stepline.roofline("llama-3.1-8b", "h2000", batch=1, context_tokens=1)


def test_roofline_answers_as_the_command_does(tmp_path):
    file = tmp_path / "floors.json"
    options = [
        "--tp",
        "4",
        "--ep",
        "4",
        "--context",
        "8192",
        "--context-length",
        "1048576",
        "--kv-dtype",
        "fp8",
    ]
    main(["roofline", "deepseek-v4-flash", "--gpu", "h200", "--batch", "8", *options, "--json", str(file)])
    (point,) = json.loads(file.read_text())["points"]
    for routing in ("strict", "expected"):
        floor = stepline.roofline(
            "deepseek-v4-flash",
            "h200",
            batch=8,
            tp=4,
            ep=4,
            context_length=1048576,
            kv_dtype="fp8",
            routing=routing,
        )
        assert json.loads(msgspec.json.encode(floor)) == point[routing]


def test_compare_answers_as_the_command_does(tmp_path):
    before, after, file = H200 / "graph_cap8", H200 / "healthy_8b", tmp_path / "verdict.json"
    main(
        ["compare", str(before), str(after), "--gpu", "h200", "--effect", "5", "--json", str(file), "--quiet"]
    )
    told = json.loads(file.read_text())
    for sides in ((before, after), ([str(before)], [after]), (stepline.read(before), stepline.read(after))):
        result = stepline.compare(*sides, effect_percent=5, gpu="h200")
        assert json.loads(to_json(result)) == told
    with pytest.raises(UsageError, match="is on both sides"):
        stepline.compare(before, [before])


def test_a_setting_that_is_none_or_impossible_is_refused():
    with pytest.raises(TypeError, match="context"):
        stepline.diagnose(H200 / "healthy_8b", context=8192)
    with pytest.raises(UsageError, match="--tp 0"):
        stepline.diagnose(H200 / "healthy_8b", tp=0)


def test_the_defaults_are_those_of_the_requests():
    """They are spelled out where a reader of the signature wants them, and stand in the requests."""
    live, said = msgspec.structs.asdict(LiveRequest()), defaults(stepline.record)
    assert (seconds(said.pop("budget")), levels(said.pop("concurrency"))) == (
        live.pop("budget_s"),
        live.pop("concurrency"),
    )
    assert said == {name: value for name, value in live.items() if name != "setup"}
    floors, said = RooflineRequest(model="", gpu=""), defaults(stepline.roofline)
    said.pop("routing")
    assert said == {name: getattr(floors, name) for name in said}
    assert defaults(stepline.compare) == {
        "effect_percent": CompareRequest(before=(), after=()).effect_percent
    }
    assert Settings.__annotations__.keys() == set(SetupRequest.__struct_fields__)
    matrix = msgspec.structs.asdict(Load())
    usual = msgspec.structs.asdict(LiveRequest())
    assert seconds(matrix.pop("budget")) == usual["budget_s"]
    assert matrix == {name: usual[name] for name in matrix}


def test_importing_it_imports_nothing_else():
    code = "import sys, stepline; print(sorted(name for name in sys.modules if name[:8] in ('stepline', 'msgspec')))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "['stepline', 'stepline.version']"

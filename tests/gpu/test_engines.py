"""Real engines with a planted fault, where they are installed: minutes each."""

import importlib.util
import json

import pytest

from stepline.cli.main import main


@pytest.mark.parametrize("engine", ["sglang", "vllm"])
def test_a_capped_batch_is_named_on_a_real_engine(engine, tmp_path):
    if importlib.util.find_spec(engine) is None:
        pytest.skip(f"{engine} is not installed")
    assert main(["lab", "run", engine, "-o", str(tmp_path), "--only", "batch-capped"]) == 0
    answer = tmp_path / "answer.json"
    main(["diagnose", str(tmp_path / "batch-capped"), "--quiet", "--json", str(answer)])
    first = json.loads(answer.read_text())["findings"][0]
    assert (first["code"], first["status"]) == ("S201", "confirmed")

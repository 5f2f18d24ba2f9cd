import argparse
import json
import struct
from pathlib import Path

import pytest

from stepline.cli import roofline
from stepline.errors import SteplineError
from stepline.facts.catalogue import find_model
from stepline.tasks.model_file import load_architecture


def call(*words: str) -> int:
    parser = argparse.ArgumentParser()
    roofline.add_arguments(parser)
    return roofline.run(parser.parse_args(words))


def test_the_table_names_every_component(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("deepseek-ai/DeepSeek-V4-Flash", "--gpu", "rtx-pro-6000", "--tp", "4", "--batch", "16") == 0
    out = capsys.readouterr().out
    for part in ("284.3 B", "moe experts", "indexer", "kv read", "86 all-reduces", "3.85 kB a token"):
        assert part in out


def test_json_alone_goes_to_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("llama-3.1-8b", "--gpu", "h200", "--context", "320", "--batch", "1,64", "--json", "-")
    assert call(*words, "--what-if", "gpu=h100") == 0
    content = json.loads(capsys.readouterr().out)
    assert [point["batch"] for point in content["points"]] == [1, 64]
    assert content["points"][0]["strict"]["total_ms"] == pytest.approx(3.14, rel=0.02)
    assert content["what_if"]["points"][0]["strict"]["total_ms"] == pytest.approx(3.14 * 4.8 / 3.35, rel=0.02)


def test_what_if_shows_the_configured_context(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("deepseek-v4-flash", "--gpu", "h200", "--tp", "4", "--batch", "16")
    assert call(*words, "--what-if", "context-length=1048576") == 0
    assert "1,048,576" in capsys.readouterr().out


def test_the_page_needs_no_network(tmp_path: Path) -> None:
    page = tmp_path / "roofline.html"
    assert call("llama-3.1-8b", "--gpu", "h200", "--html", str(page)) == 0
    text = page.read_text()
    assert "attention weights" in text
    assert "http" not in text
    assert "<script" not in text


def test_a_model_folder_gives_its_exact_size(tmp_path: Path) -> None:
    folder = tmp_path / "my-llama"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(find_model("llama-3.1-8b").config))
    header = b'{"w":{"dtype":"BF16","shape":[4],"data_offsets":[0,8]}}'
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(8))
    assert load_architecture(str(folder)).checkpoint_bytes == 8
    (folder / "model.safetensors.index.json").write_text('{"metadata": {"total_size": 16060522496}}')
    assert load_architecture(str(folder)).checkpoint_bytes == 16060522496
    assert load_architecture(str(folder)).name == "my-llama"


def test_a_quantisation_beside_the_config_is_read(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(find_model("llama-3.1-70b").config))
    section = {
        "quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8", "exclude_modules": ["lm_head"]}
    }
    (tmp_path / "hf_quant_config.json").write_text(json.dumps(section))
    model = load_architecture(str(tmp_path))
    assert model.kv_dtype == "fp8"
    assert {m.format.name for m in model.body.matrices if m.component == "dense ffn"} == {"fp8"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("llama-3.1-9b", "--gpu", "h200"), "nearest: .*Llama-3.1-8B"),
        (("llama-3.1-8b", "--gpu", "h210"), "nearest known: .*H200"),
        (("llama-3.1-8b", "--gpu", "h200", "--tp", "5"), "nearest possible: 2, 4, 8"),
        (("llama-3.1-8b", "--gpu", "h200", "--batch", "x"), "no list of whole numbers"),
        (("llama-3.1-8b", "--gpu", "h200", "--batch", "0"), "below 1"),
        (("llama-3.1-8b", "--gpu", "h200", "--context", "0"), "--context is 0"),
        (("llama-3.1-8b", "--gpu", "h200", "--what-if", "sun=1"), "no KEY=VALUE"),
        (("llama-3.1-8b", "--gpu", "h200", "--what-if", "tp=one"), "is no int"),
        (("llama-3.1-8b", "--gpu", "h200", "--kv-dtype", "fp3"), "'fp3' is not known; known: bf16"),
        (("./absent.json", "--gpu", "h200"), "no model at"),
    ],
)
def test_a_mistake_is_one_sentence(words: tuple[str, ...], message: str) -> None:
    with pytest.raises(SteplineError, match=message) as caught:
        call(*words)
    assert "\n" not in str(caught.value)

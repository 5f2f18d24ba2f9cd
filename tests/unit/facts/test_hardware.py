import re
from pathlib import Path

import pytest

from stepline.errors import UnknownFact
from stepline.facts import hardware
from stepline.facts.hardware import all_gpus, find_gpu


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("NVIDIA H200", "NVIDIA H200 SXM"),
        ("h200", "NVIDIA H200 SXM"),
        ("h200_sxm", "NVIDIA H200 SXM"),
        ("NVIDIA H100 80GB HBM3", "NVIDIA H100 SXM"),
        ("NVIDIA H100 PCIe", "NVIDIA H100 PCIe"),
        ("NVIDIA A100-SXM4-80GB", "NVIDIA A100 SXM 80GB"),
        ("NVIDIA A100-SXM4-40GB", "NVIDIA A100 SXM 40GB"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "NVIDIA RTX PRO 6000 Blackwell Server Edition"),
        ("rtx-pro-6000", "NVIDIA RTX PRO 6000 Blackwell Server Edition"),
        ("NVIDIA GeForce RTX 4090", "NVIDIA GeForce RTX 4090"),
        ("gb10", "NVIDIA GB10"),
        ("AMD Instinct MI300X", "AMD Instinct MI300X"),
    ],
)
def test_a_gpu_is_found_by_the_names_in_use(name: str, found: str) -> None:
    assert find_gpu(name).name == found


@pytest.mark.parametrize("name", ["4x H200", "h210", "", "NVIDIA"])
def test_an_unknown_gpu_is_refused_with_the_nearest_names(name: str) -> None:
    with pytest.raises(UnknownFact, match=r"nearest known: .*NVIDIA"):
        find_gpu(name)


def test_a_variant_that_is_not_listed_is_never_taken_for_its_sibling() -> None:
    # An H200 NVL has the memory of an SXM board and less of everything else.
    with pytest.raises(UnknownFact):
        find_gpu("NVIDIA H200 NVL")


HEAD = (Path(hardware.__file__).with_name("hardware.toml")).read_text().partition("[[gpu]]")[0]
_LETTERS = {" ", *re.findall(r"^#   ([A-Z])  \S", HEAD, re.MULTILINE)}


def test_every_number_has_a_source() -> None:
    for gpu in all_gpus():
        assert {"memory_bytes", "bandwidth_bytes_s", "peak_bf16", "sms"} <= gpu.sources.keys()
        assert all(source and set(source) <= _LETTERS for source in gpu.sources.values()), gpu.name


def test_a_source_of_driver_memory_names_every_gpu_it_stands_for() -> None:
    section = re.search(r"^#   M  .*?(?=^#   [A-Z]  )", HEAD, re.MULTILINE | re.DOTALL)
    assert section is not None
    for gpu in all_gpus():
        if gpu.sources["memory_bytes"] == "M":
            plain = re.sub(
                r"NVIDIA |AMD Instinct |GeForce |Blackwell | Edition| Workstation| SXM| PCIe| \d0GB",
                "",
                gpu.name,
            )
            assert plain in section[0], gpu.name


def test_figures_are_dense_and_physical() -> None:
    for gpu in all_gpus():
        peaks = gpu.peak_flops
        assert 1.5 <= peaks.get("fp8", 2 * peaks["bf16"]) / peaks["bf16"] <= 2.1, gpu.name
        assert 1e11 < gpu.bandwidth_bytes_s <= 8e12
        assert peaks["bf16"] / gpu.bandwidth_bytes_s < 1000, gpu.name


def test_a_missing_type_runs_in_the_next_wider_one() -> None:
    assert find_gpu("h200").peak("fp4") == find_gpu("h200").peak("fp8")
    assert find_gpu("a100").peak("fp8") == find_gpu("a100").peak("bf16")
    with pytest.raises(UnknownFact, match="no tf32 peak"):
        find_gpu("a100").peak("tf32")

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


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("4x H200", "NVIDIA H200 SXM"),
        ("H100 x8", "NVIDIA H100 SXM"),
        ("8xH100-SXM5", "NVIDIA H100 SXM"),
        ("NVIDIA-H100-80GB-HBM3", "NVIDIA H100 SXM"),
        ("GPU 0: NVIDIA H200 (UUID: GPU-1b2c)", "NVIDIA H200 SXM"),
        ("rtx4090", "NVIDIA GeForce RTX 4090"),
        ("2x NVIDIA GeForce RTX 5090 (32GB)", "NVIDIA GeForce RTX 5090"),
        ("RTX 4090 24GB", "NVIDIA GeForce RTX 4090"),
        ("NVIDIA L4 24 GiB", "NVIDIA L4"),
        ("H20 141GB", "NVIDIA H20-3e"),
        ("nvidia-tesla-t4", "NVIDIA T4"),
        ("NVIDIA H100 NVL", "NVIDIA H100 NVL"),
        ("NVIDIA H200 NVL", "NVIDIA H200 NVL"),
        ("NVIDIA GH200 480GB", "NVIDIA GH200 96GB"),
        ("NVIDIA Thor", "NVIDIA Jetson AGX Thor T5000"),
        ("AMD Instinct MI300X VF", "AMD Instinct MI300X"),
        ("AMD_Instinct_MI325X_OAM", "AMD Instinct MI325X"),
        ("HL-225", "Intel Gaudi 2"),
        ("Ascend910_9382", "Huawei Ascend 910C die"),
        ("10de:2330", "NVIDIA H100 SXM"),
        ("0x233010DE", "NVIDIA H100 SXM"),
        ("1002:740f", "AMD Instinct MI210"),
    ],
)
def test_a_gpu_is_found_whatever_tools_and_people_put_around_its_name(name: str, found: str) -> None:
    assert find_gpu(name).name == found


@pytest.mark.parametrize("name", ["h210", "", "NVIDIA", "x4", "10de:ffff"])
def test_an_unknown_gpu_is_refused_with_the_nearest_names(name: str) -> None:
    with pytest.raises(UnknownFact, match=r"nearest known: .*NVIDIA"):
        find_gpu(name)


@pytest.mark.parametrize(
    "name",
    [
        "NVIDIA H100 CNX",
        "RTX 4090 48GB",
        "h100 40gb",
        "NVIDIA GeForce RTX 4090 Laptop GPU",
        "NVIDIA A10G",
        "Ascend 910B3",
    ],
)
def test_a_variant_that_is_not_listed_is_never_taken_for_its_sibling(name: str) -> None:
    # An A10G is no A10, a rebuilt card no card of the maker's.
    with pytest.raises(UnknownFact, match="nearest known"):
        find_gpu(name)


@pytest.mark.parametrize("name", ["NVIDIA A100-SXM4-80GB MIG 1g.10gb", "GRID A100-10C", "L40S-48Q"])
def test_a_slice_of_a_gpu_is_not_the_gpu(name: str) -> None:
    with pytest.raises(UnknownFact, match="slice"):
        find_gpu(name)


def test_no_spelling_belongs_to_two_gpus() -> None:
    spelled: dict[str, str] = {}
    for gpu, aliases in hardware._load():
        for alias in {hardware._key(alias) for alias in (gpu.name, *aliases)}:
            assert spelled.setdefault(alias, gpu.name) == gpu.name
    devices = [device for gpu in all_gpus() for device in gpu.pci]
    assert len(devices) == len(set(devices)) > 30


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
        least = (
            1.0 if gpu.name == "Intel Gaudi 3" else 1.5
        )  # whose matrix engines take both types at one rate
        assert least <= peaks.get("fp8", 2 * peaks["bf16"]) / peaks["bf16"] <= 2.1, gpu.name
        assert 1e11 < gpu.bandwidth_bytes_s <= 8e12
        assert peaks["bf16"] / gpu.bandwidth_bytes_s < 1000, gpu.name


def test_a_missing_type_runs_in_the_next_wider_one() -> None:
    assert find_gpu("h200").peak("fp4") == find_gpu("h200").peak("fp8")
    assert find_gpu("a100").peak("fp8") == find_gpu("a100").peak("bf16")
    with pytest.raises(UnknownFact, match="no tf32 peak"):
        find_gpu("a100").peak("tf32")

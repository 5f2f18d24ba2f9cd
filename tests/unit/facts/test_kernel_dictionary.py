"""The shipped dictionary of kernels: whole, placed and quick."""

from pathlib import Path

import pytest

from stepline.facts import kernel_dictionary, kernels
from stepline.facts.kernel_grammar import spoken

FACTS = Path(kernels.__file__).parent
PARTS = {
    "communication",
    "speculation",
    "indexer",
    "kv-write",
    "attention",
    "linear-attention",
    "moe",
    "sampling",
}
PARTS |= {"norm", "quantise", "gemm", "elementwise", "metadata"}


def entries():
    for package in kernel_dictionary.packages():
        for file, names in package.files.items():
            for name in names:
                yield package, file, name


def test_the_data_stay_small():
    assert (FACTS / "kernel_names.json").stat().st_size < 600_000


def test_at_least_97_of_100_shipped_kernels_have_a_part_and_it_is_a_known_one():
    parts = [kernels.component(name).component for _, _, name in entries()]
    assert len(parts) > 6000
    assert set(parts) <= PARTS | {kernels.UNATTRIBUTED}
    assert parts.count(kernels.UNATTRIBUTED) < 0.03 * len(parts)


@pytest.mark.parametrize("version", ["0.5.16", "0.5.23"])
def test_of_sglangs_triton_functions_at_most_three_in_a_hundred_are_unattributed(version):
    ours = ((p, file, name) for p, file, name in entries() if (p.package, p.version) == ("sglang", version))
    names = {name for _, file, name in ours if file.endswith(".py")}
    open_ = [name for name in names if kernels.component(name).component == kernels.UNATTRIBUTED]
    assert len(open_) <= 0.03 * len(names), open_
    assert len([name for name in open_ if "kernel" in name]) <= 0.01 * len(names), open_


def test_every_rule_and_exception_places_something():
    shipped = {name.rpartition("::")[2] for _, _, name in entries()}
    judgement = kernel_dictionary._judgement()
    assert not [name for one in judgement.named for name in one.names if name not in shipped]
    places = {f"{package.package}/{file}" for package, file, _ in entries()}
    for rule in judgement.file:
        assert rule.why
        assert any(kernel_dictionary._by_file(place, rule.firm) == rule.part for place in places), rule.at


def test_a_name_that_two_packages_use_for_different_work_is_not_decided_by_either():
    found = (
        kernel_dictionary.Shipped("_k", "a", "1", "attention/x.py", dot=True),
        kernel_dictionary.Shipped("_k", "b", "1", "moe/x.py", dot=False),
    )
    assert kernel_dictionary.file_part(found, firm=False) is None
    assert kernel_dictionary.tensor(found) is None
    assert kernel_dictionary.file_part(found[:1], firm=False) == "attention"


def test_namespaces_choose_among_kernels_of_one_name():
    names = {
        one.name for one in kernel_dictionary.shipped(spoken("void topk_select_fp32::topk_kernel<8>(float*)"))
    }
    assert names == {"topk_select_fp32::topk_kernel"}


def test_a_firm_folder_of_one_package_does_not_decide_for_the_kernel_of_another():
    found = (
        kernel_dictionary.Shipped("rms_norm_kernel", "a", "1", "comm/x.cuh", dot=None),
        kernel_dictionary.Shipped("rms_norm_kernel", "b", "1", "kernels/rmsnorm_kernels.cu", dot=None),
    )
    assert kernel_dictionary.file_part(found[:1], firm=True) == "communication"
    assert kernel_dictionary.file_part(found, firm=True) is None
    assert kernels.component("void vllm::rms_norm_kernel<c10::BFloat16>(float*)").component == "norm"

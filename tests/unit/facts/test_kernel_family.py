import pytest

from stepline.facts import kernel_dictionary, kernels
from stepline.facts.kernel_family import Family, _rules, family


@pytest.mark.parametrize(
    ("name", "known"),
    [
        (
            "_tiled_sparse_decode_kernel",
            {"tensor": False, "split": None, "sized": "selected", "rereads": "head"},
        ),
        ("_mxfp4_slot_gemv_kernel", {"tensor": False, "rereads": "slot", "sized": None}),
        ("_fwd_grouped_kernel_stage1", {"tensor": True, "split": "parts", "sized": "live", "fallback": None}),
        ("_fwd_kernel_stage2", {"tensor": False, "split": "merge"}),
        ("void deep_gemm::smxx_clean_logits<1u, 8192u, 8u, float>(unsigned int)", {"sized": "configured"}),
        ("sm90_fp8_paged_mqa_logits", {"sized": "live"}),
        ("void flash_fwd_splitkv_mla_kernel<Traits>(Params)", {"split": "parts"}),
        ("void flash_fwd_splitkv_mla_combine_kernel<Traits>(Params)", {"split": "merge"}),
        ("void cublasLt::splitKreduce_kernel<32>(P)", {"split": "merge", "tensor": None}),
        ("fused_moe_kernel", {"tensor": True, "split": None, "kind": "products"}),
        ("moe_align_block_size_kernel", {"kind": "permutation"}),
        ("void topkGatingSoftmax<float, 8>(float const*)", {"kind": "routing"}),
        (
            "void sm90::decode::sparse_fp8::flash_fwd_splitkv_mla_fp8_sparse_kernel<K>(P)",
            {"kind": "sparse latent"},
        ),
        ("void flash::flash_fwd_splitkv_mla_kernel<K>(P)", {"kind": "latent"}),
        ("_gqa_share_sparse_decode_kernel", {"kind": "sparse"}),
        ("_tiled_sparse_decode_kernel", {"kind": "sparse latent"}),
        ("nvjet_sm90_tst_64x16", {"kind": None}),
    ],
)
def test_what_is_known_of_a_kernel(name, known):
    found = family(name)
    assert {key: getattr(found, key) for key in known} == known


def test_a_fallback_says_what_it_stands_in_for_and_where_it_was_read():
    found = family("_tiled_sparse_decode_kernel")
    assert found.fallback.startswith("FlashMLA")
    assert any("flash_mla_sm120_triton.py" in place for place in found.source)


def test_of_an_unheard_of_kernel_nothing_is_known():
    assert family("zzz_unheard_of") == Family()


def test_every_rule_speaks_of_a_shipped_kernel():
    places = [
        (name, f"{package.package}/{file}::{name.rpartition('::')[2]}")
        for package in kernel_dictionary.packages()
        for file, names in package.files.items()
        for name in names
    ]
    for rule, at, words in _rules():
        assert any((at and at.search(place)) or (words and words.search(name)) for name, place in places), (
            rule.why
        )


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("_tiled_sparse_decode_kernel", "cuda-core"),
        ("_fwd_grouped_kernel_stage1", "tensor"),
        ("fused_moe_kernel", "tensor"),
    ],
)
def test_the_body_of_a_shipped_kernel_decides_its_path(name, path):
    assert kernels.path(name) == path

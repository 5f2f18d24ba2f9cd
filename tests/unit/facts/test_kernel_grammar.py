import pytest

from stepline.facts.kernel_grammar import compiled, spoken


@pytest.mark.parametrize(
    ("name", "base", "spaces"),
    [
        ("void flash::flash_fwd_kernel<Traits<128, 64>, true>(flash::Params)", "flash_fwd_kernel", ("flash",)),
        ("void (anonymous namespace)::topkGating<int, 8>(float const*, int)", "topkGating", ()),
        ("_ZN5flash16flash_fwd_kernelI6TraitsILi64EELb0EEEv6Params", "flash_fwd_kernel", ("flash",)),
        ("_Z17reshape_and_cachePfS_", "reshape_and_cache", ()),
        ("fused_moe_kernel_0d1d2d3de", "fused_moe_kernel", ()),
        ("_fwd_kernel_stage1", "_fwd_kernel_stage1", ()),
        ("kernel_cake_gdn_0a51e72fff418c2b6ee0", "kernel_cake_gdn", ()),
        ("nvjet_sm90_tst_64x16_64x16_2x1_v_bz_TNT", "nvjet_sm90_tst_64x16_64x16_2x1_v_bz_TNT", ()),
    ],
)  # fmt: skip
def test_a_name_is_read_as_compilers_and_profilers_write_it(name, base, spaces):
    assert (spoken(name).base, spoken(name).spaces) == (base, spaces)


def test_mangling_keeps_the_file_of_what_is_local_to_it():
    inner = "_GLOBAL__N__d8ca5d0d_22_topk_softmax_kernel_cu_6fe5abcd"
    found = spoken(f"_ZN{len(inner)}{inner}10topkGatingEPf")
    assert (found.base, found.spaces, found.file) == ("topkGating", (), "topk_softmax_kernel.cu")


@pytest.mark.parametrize("name", ["", "_Z", "_ZN", "<", "a<b", "void ", "::", ")(", "_ZN999x", "x" * 100_000])
def test_damaged_names_are_read_without_an_error(name):
    assert spoken(name).base is not None
    assert compiled(name) is None

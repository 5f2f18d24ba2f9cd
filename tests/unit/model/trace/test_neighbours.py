"""Kernels that nothing names, placed by the layers they recur in."""

import numpy as np
import pytest

from stepline.model.trace.neighbours import owners

COMPONENTS = ["unattributed", "norm", "gemm", "kv-write", "attention", "moe", "elementwise", "metadata"]
ATTENTION = ["norm", "gemm", "kv-write", "?a", "gemm"]
EXPERTS = ["norm", "gemm", "moe", "?m", "elementwise", "?m", "moe"]


def place(layer, layers=12, steps=2, before=()):
    kernels, lanes = [], []
    for step in range(steps):
        one = [*before, *(layer * layers)]
        kernels += one
        lanes += [step] * len(one)
    names = {kernel: index for index, kernel in enumerate(dict.fromkeys(kernels))}
    component = np.array([COMPONENTS.index("unattributed" if k.startswith("?") else k) for k in kernels])
    name = np.array([names[k] for k in kernels])
    found = owners(name, component, COMPONENTS, np.array(lanes), np.arange(len(kernels)))
    called = {index: kernel for kernel, index in names.items()}
    return {called[index]: owner for index, owner in found.items()}


def test_the_kernel_of_a_half_with_a_cache_write_and_no_attention_is_attention():
    assert place([*ATTENTION, *EXPERTS]) == {"?a": "attention", "?m": "moe"}


def test_beside_a_named_attention_kernel_it_may_be_a_projection():
    assert place(["norm", "?g", "kv-write", "attention", "?g"]) == {}


def test_between_two_kernels_of_an_owner_it_is_the_owners():
    assert place(["norm", "gemm", "kv-write", "?c", "attention", "gemm"]) == {"?c": "attention"}


def test_work_of_once_a_step_is_no_layers():
    assert place(ATTENTION, layers=12, steps=12, before=["norm", "kv-write", "?once"]) == {"?a": "attention"}


@pytest.mark.parametrize(
    "layer", [["gemm", "?x", "gemm"], ["norm", "kv-write", "?x", "moe"], ["norm", "gemm", "?x"]]
)
def test_without_norms_or_with_two_owners_or_none_it_stays_unnamed(layer):
    assert place(layer) == {}


def test_a_run_too_long_for_a_half_of_a_layer_says_nothing():
    assert place(["norm", "kv-write", "?x", *["elementwise"] * 70]) == {}


def test_a_few_occurrences_say_nothing():
    assert place(ATTENTION, layers=2, steps=2) == {}

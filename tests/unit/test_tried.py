"""What an A/B says of a cause, whatever the rule itself can see."""

import msgspec
import pytest

from stepline.evidence.load import LeverTrial
from stepline.evidence.origin import Origin
from tests.rules.server import diagnosed, server


def _tried(lever, before, after, **more):
    trial = LeverTrial(origin=Origin("ab.csv", 2), lever=lever, before=before, after=after, **more)
    return diagnosed(msgspec.structs.replace(server([]), levers=(trial,)))


@pytest.mark.parametrize(
    ("lever", "code"),
    [
        ("max_num_seqs=64", "S201"),
        ("context_length=131072", "K401"),
        ("mode=cuda_graph", "H302"),
        ("cuda_graph_max_bs=128", "H303"),
        ("backend=flashinfer", "K402"),
    ],
)
def test_a_lever_with_effect_confirms_the_one_cause_it_acts_on(lever, code):
    answer = _tried(lever, 30.0, 60.0)
    assert [(finding.code, finding.status) for finding in answer.findings] == [(code, "confirmed")]
    assert answer.findings[0].recoverable_tok_s == 30.0


def test_latencies_count_the_other_way_round():
    assert [finding.code for finding in _tried("max_num_seqs=64", 60.0, 30.0, measure="ms").findings] == [
        "S201"
    ]
    assert _tried("max_num_seqs=64", 30.0, 60.0, measure="ms").findings == ()


@pytest.mark.parametrize("lever", ["engine=other", "build=patched", "moe runner", "max_num_seqs=64"])
def test_no_effect_or_no_single_cause_confirms_nothing(lever):
    assert _tried(lever, 30.0, 31.0).findings == ()
    if "seqs" not in lever:
        assert _tried(lever, 30.0, 60.0).findings == ()


def test_the_largest_batch_decides():
    trials = [
        LeverTrial(
            origin=Origin("ab.csv", 2), lever="backend=flashinfer", concurrency=1, before=10, after=20
        ),
        LeverTrial(
            origin=Origin("ab.csv", 3), lever="backend=flashinfer", concurrency=16, before=100, after=101
        ),
    ]
    assert diagnosed(msgspec.structs.replace(server([]), levers=tuple(trials))).findings == ()

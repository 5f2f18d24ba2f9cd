"""With every specific rule switched off the accounting still names the part that was slowed, on real traces."""

from pathlib import Path

import pytest

from stepline.findings.diagnose import diagnose
from stepline.model.signs.accounting import largest_excess
from stepline.tasks.picture import picture_of
from stepline.tasks.setup import SetupRequest

DATA = Path(__file__).parents[1] / "data"
PLANTED = {
    "h200-live/kvsplit1": ("attention", "K400"),
    "h200-live/tp2_nop2p": ("communication", "C500"),
    "h200-torch/attention_unfused": ("attention", "K400"),
    "h200-torch/attention_unfused_graph": ("elementwise", "K400"),
    "h200-torch/weights_fp32": ("gemm", "K400"),
    "h200-torch/allreduce_over_sockets": ("communication", "C500"),
}
SOUND = ("h200-torch/attention_fused", "h200-torch/weights_bf16", "h200-torch/allreduce_nccl")


@pytest.mark.parametrize(("folder", "planted"), PLANTED.items())
def test_the_largest_excess_is_the_planted_one(folder, planted):
    picture = picture_of(DATA / folder, SetupRequest(gpu="h200"))
    part, code = planted
    assert largest_excess(picture).name == part
    assert diagnose(picture, general_only=True).findings[0].code == code


@pytest.mark.parametrize("folder", SOUND)
def test_sound_traces_have_none(folder):
    picture = picture_of(DATA / folder, SetupRequest(gpu="h200"))
    assert diagnose(picture, general_only=True).findings == ()

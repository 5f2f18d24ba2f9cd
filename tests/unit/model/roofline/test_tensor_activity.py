from stepline.facts.catalogue import find_model
from stepline.facts.hardware import find_gpu
from stepline.model.roofline.architecture import parse_config
from stepline.model.roofline.deployment import Deployment
from stepline.model.roofline.layout import Layout
from stepline.model.roofline.tensor_activity import tensor_activity


def test_a_slow_step_of_v4_flash_shows_next_to_nothing() -> None:
    flash = parse_config(find_model("DeepSeek-V4-Flash").config)
    activity = tensor_activity(
        Deployment(flash, find_gpu("rtx-pro-6000"), Layout(tp=4)), batch=16, step_ms=533
    )
    assert 0.0003 < activity.low < 0.0005
    assert activity.low < activity.high < 0.012


def test_a_healthy_8b_server_lies_inside() -> None:
    llama = parse_config(find_model("llama-3.1-8b").config)
    activity = tensor_activity(Deployment(llama, find_gpu("h200")), batch=1, step_ms=4.92)
    assert activity.low < 0.025 < activity.high
    assert set(activity.share_by_tile) == {8, 16, 64}

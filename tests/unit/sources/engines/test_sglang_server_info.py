import pytest

from stepline.sources.engines.sglang.server_info import read_server_info


@pytest.mark.parametrize("listed", [True, 3, "states", {}, [None], [[]], None])
def test_internal_states_of_another_type_tell_nothing_and_break_nothing(listed):
    assert read_server_info({"internal_states": listed}, "server_info.json").server.max_running is None

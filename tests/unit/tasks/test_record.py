"""What Ctrl-C leaves of a recording."""

import pytest

from stepline.errors import Interrupted, UsageError
from stepline.sources.client_file import CLIENT_FILE
from stepline.tasks.live import LiveRequest, check_live
from stepline.tasks.record import kept


def test_what_was_measured_is_named_once(tmp_path):
    (tmp_path / CLIENT_FILE).touch()
    with pytest.raises(Interrupted) as stop, kept(tmp_path / "outer"), kept(tmp_path):
        raise KeyboardInterrupt
    assert stop.value.folder == tmp_path


def test_where_nothing_was_measured_nothing_is_kept(tmp_path):
    with pytest.raises(KeyboardInterrupt) as stop, kept(tmp_path):
        raise KeyboardInterrupt
    assert not isinstance(stop.value, Interrupted)


@pytest.mark.parametrize(
    ("request_", "named"),
    [
        (LiveRequest(budget_s=0), "--budget 0"),
        (LiveRequest(budget_s=float("inf")), "--budget inf"),
        (LiveRequest(concurrency=(8, 0)), "--concurrency 8,0"),
        (LiveRequest(concurrency=(5000,)), "--concurrency 5000"),
    ],
)
def test_a_request_that_cannot_be_right_is_refused_as_what_is_typed(request_, named):
    with pytest.raises(UsageError, match=named):
        check_live(request_)

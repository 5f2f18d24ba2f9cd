"""When more client processes help, and when they would take a core from somebody."""

import pytest

from stepline.evidence.load import ClientHealth
from stepline.model.measure.client_health import more_processes


def health(cpu_share: float, processes: int = 1, late_share: float = 0.0) -> ClientHealth:
    return ClientHealth(
        cpu_share=cpu_share,
        us_per_token=8.0,
        lag_p50_ms=0.0,
        lag_p99_ms=1.0,
        late_share=late_share,
        processes=processes,
    )


@pytest.mark.parametrize(
    ("seen", "cores", "load", "wanted"),
    [
        (health(0.97), 8, 3.0, 2),
        (health(0.97, processes=2), 8, 3.0, 4),
        (health(0.97, processes=4), 8, 5.0, None),
        (health(0.97), 2, 2.5, None),
        (health(0.5, late_share=0.4), 8, 1.0, None),
        (None, 8, 1.0, None),
    ],
)
def test_a_full_core_asks_for_another_where_there_is_one(
    seen: ClientHealth | None, cores: int, load: float, wanted: int | None
) -> None:
    assert more_processes(seen, cores, load) == wanted

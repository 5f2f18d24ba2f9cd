from datetime import UTC, datetime

import msgspec

from stepline.evidence.gpu import GpuSample
from stepline.evidence.load import LoadLevel
from stepline.evidence.metrics import EngineMetrics
from stepline.evidence.origin import Origin
from stepline.evidence.run import Run
from stepline.evidence.scheduler import DecodeReport, PrefillReport, SchedulerEvent
from stepline.model.log_year import with_year

HERE = Origin("server.log", 1)


def at(year: int, second: int = 0) -> float:
    return datetime(year, 11, 29, 22, 5, second, tzinfo=UTC).timestamp()


def logged(year: int) -> Run:
    return Run(
        decodes=(
            DecodeReport(seq=1, origin=HERE, running=8, time_s=at(year, 1)),
            DecodeReport(seq=4, origin=HERE, running=8),
        ),
        prefills=(PrefillReport(seq=2, origin=HERE, new_sequences=1, new_tokens=9, time_s=at(year, 2)),),
        events=(SchedulerEvent(seq=3, origin=HERE, kind="ready", text="", time_s=at(year, 3)),),
    )


def times(run: Run) -> list[float | None]:
    return [record.time_s for record in (*run.decodes, *run.prefills, *run.events)]


def test_the_log_moves_into_the_year_of_whatever_has_one():
    plain = logged(1972)
    beside = (
        {"levels": (LoadLevel(origin=HERE, concurrency=8, start_s=at(2026)),)},
        {"metrics": (EngineMetrics(origin=HERE, time_s=at(2026)),)},
        {"gpu_samples": (GpuSample(origin=HERE, time_s=at(2026)),)},
    )
    for evidence in beside:
        moved = with_year(msgspec.structs.replace(plain, **evidence))
        assert times(moved) == [at(2026, 1), None, at(2026, 2), at(2026, 3)]


def test_a_dated_line_among_them_stays():
    run = msgspec.structs.replace(logged(1972), metrics=(EngineMetrics(origin=HERE, time_s=at(2026)),))
    other = msgspec.structs.replace(run, prefills=logged(2025).prefills)
    assert times(with_year(other))[2] == at(2025, 2)


def test_a_dated_log_and_a_log_alone_stay_as_they_are():
    dated = msgspec.structs.replace(logged(2025), metrics=(EngineMetrics(origin=HERE, time_s=at(2026)),))
    assert with_year(dated) is dated
    for alone in (logged(1972), Run()):
        assert with_year(alone) is alone
    untimed = msgspec.structs.replace(logged(1972), levels=(LoadLevel(origin=HERE, concurrency=8),))
    assert with_year(untimed) is untimed

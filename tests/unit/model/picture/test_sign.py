"""A question asked of a frozen record is worked out once, and the record stays what it was."""

from collections import Counter
from pathlib import Path

import msgspec
import pytest

from stepline.findings.diagnose import diagnose
from stepline.model.picture import picture as waist
from stepline.model.picture.assess import assess
from stepline.model.picture.picture import Setup
from stepline.model.picture.sign import SIGNS, sign
from stepline.model.signs.batch_limit import running_limit
from stepline.sources.read import read_one_run as read
from tests.rules.server import Stage, server


class Record(msgspec.Struct, frozen=True, dict=True):
    value: int


asked: list[int] = []


@sign
def doubled(record: Record, times: int = 1) -> int:
    """Twice the value."""
    asked.append(times)
    return 2 * times * record.value


@pytest.fixture(autouse=True)
def forget():
    asked.clear()
    yield
    SIGNS.discard(f"{__name__}.doubled")


def test_a_question_is_worked_out_once_for_each_record_and_value():
    record = Record(2)
    assert [doubled(record), doubled(record), doubled(record, 3), doubled(record, times=3)] == [4, 4, 12, 12]
    assert doubled(Record(5)) == 10
    assert asked == [1, 3, 3, 1]


def test_an_answer_is_no_part_of_the_record():
    plain, told = Record(2), Record(2)
    doubled(told)
    assert plain == told
    assert hash(plain) == hash(told)
    assert msgspec.json.encode(plain) == msgspec.json.encode(told)
    with pytest.raises(AttributeError):
        told.value = 3  # type: ignore[misc]  # what is tried


def test_a_changed_copy_starts_without_answers():
    record = Record(2)
    doubled(record)
    assert doubled(msgspec.structs.replace(record, value=7)) == 14


def test_a_picture_with_another_load_has_another_limit():
    picture = assess(server([Stage(running=8, step_ms=5.1, queued=56)], max_running=8), Setup(gpu="h200"))
    assert running_limit(picture) is running_limit(picture)
    assert picture.load is not None
    other = msgspec.structs.replace(picture, load=msgspec.structs.replace(picture.load, queued=0))
    assert [limit.kind for limit in (running_limit(picture), running_limit(other)) if limit] == [
        "cap",
        "nothing waits",
    ]


@pytest.mark.parametrize("capture", ["v4_1m", "cap8"])
def test_no_floor_is_worked_out_twice_in_a_diagnosis(monkeypatch, capture):
    floors: Counter[tuple[object, ...]] = Counter()
    real = waist.decode_floor

    def counted(deployment, **question):
        floors[(deployment.layout, deployment.kv_dtype, *sorted(question.items()))] += 1
        return real(deployment, **question)

    monkeypatch.setattr(waist, "decode_floor", counted)
    folder = Path(__file__).parents[3] / "data" / "h200-live" / capture
    diagnose(assess(read([folder]), Setup(gpu="h200")))
    assert len(floors) > 2
    assert set(floors.values()) == {1}

"""What schedulers must do whatever happens: tokens conserved, caps kept, the pool never overdrawn."""

import random
from collections import Counter

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepline.facts.catalogue import find_model
from stepline.facts.hardware import find_gpu
from stepline.lab.sim.engine import Engine
from stepline.lab.sim.faults import find_fault
from stepline.lab.sim.forward import Forward
from stepline.lab.sim.prompt import Prompt, Request, from_ids
from stepline.lab.sim.start import Started, start
from stepline.lab.sim.virtual import Virtual


def started(engine: str, fault: str = "healthy", **changes: object) -> Started:
    planted, strength = find_fault(fault)
    config = find_model("llama-3.1-8b").config
    return start(
        engine, "m", config, find_gpu("h200"), fault=planted, strength=strength, seed=3, changes=changes
    )


class Log:
    """Forwards in order, and tokens by request as the client got them."""

    def __init__(self, virtual: Virtual) -> None:
        self.virtual = virtual
        self.forwards: list[Forward] = []
        self.got: Counter[str] = Counter()
        self.ended: list[str] = []
        virtual.engine.on_forward.append(self.forwards.append)

    def send(self, rid: str, prompt: Prompt, most: int, at_s: float = 0.0) -> Request:
        request = Request(rid, prompt, most, at_s)

        def take(one: Request, new: int, at_s: float, made: int, last: bool) -> None:
            self.got[one.rid] += new
            assert self.got[one.rid] == made
            if last:
                self.ended.append(one.rid)

        request.owner = take
        self.virtual.submit(request)
        return request


def drive(one: Started) -> Log:
    return Log(Virtual(Engine(one.scheduler, one.front)))


def ids(count: int, seed: int) -> list[int]:
    return random.Random(seed).choices(range(10**6), k=count)  # noqa: S311


def fresh(tokens: int, seed: int) -> Prompt:
    return from_ids(ids(tokens, seed))


@pytest.mark.parametrize("engine", ["sglang", "vllm"])
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_every_token_arrives_once_and_the_pool_is_never_overdrawn(engine: str, data: st.DataObject) -> None:
    kv = data.draw(st.integers(40, 400)) * 16
    one = started(
        engine,
        kv_tokens=kv,
        max_running=data.draw(st.integers(1, 40)),
        chunk_tokens=data.draw(st.sampled_from([64, 512, 8192])),
        conservativeness=data.draw(st.sampled_from([0.05, 1.0])),
        ratio_decay_steps=20,
    )
    log = drive(one)
    asked = {}
    for number in range(data.draw(st.integers(1, 30))):
        tokens, most = data.draw(st.integers(1, 400)), data.draw(st.integers(1, 200))
        request = log.send(f"r{number}", fresh(tokens, number), most, data.draw(st.floats(0, 0.5)))
        if one.scheduler.fits(request):
            asked[request.rid] = most
        else:
            log.virtual.engine.abort(request)

    def check(done: Forward) -> None:
        assert 0 <= one.scheduler.used <= kv
        assert len(one.scheduler.running) <= one.scheduler.settings.max_running
        assert done.end_s > done.start_s

    log.virtual.engine.on_forward.append(check)
    log.virtual.run(600.0)
    assert dict(log.got) == asked
    assert sorted(log.ended) == sorted(asked)
    assert one.scheduler.used == 0
    assert not one.scheduler.busy


def test_sglang_prefills_first_and_vllm_mixes() -> None:
    kinds = {}
    for engine in ("sglang", "vllm"):
        log = drive(started(engine, chunk_tokens=256))
        log.send("a", fresh(100, 1), 400)
        log.send("b", fresh(2000, 2), 10, at_s=0.5)
        log.virtual.run(20.0)
        long = [each for each in log.forwards if each.new_tokens and each.start_s > 0.4]
        assert len(long) >= 8  # 2,000 tokens, 256 at a time
        kinds[engine] = {each.kind for each in long}
        assert log.ended == ["b", "a"]
    assert kinds == {"sglang": {"prefill"}, "vllm": {"mixed"}}


def test_graphs_are_used_up_to_their_ceiling() -> None:
    log = drive(started("sglang", "H303:3"))
    for number in range(12):
        log.send(f"r{number}", fresh(50, number), 10 if number < 6 else 40)
    log.virtual.run(10.0)
    used = {each.batch: each.graph for each in log.forwards if each.kind == "decode"}
    assert used[12] is False
    assert used[6] is True


def test_the_prefix_cache_gives_what_was_computed_before_and_not_more() -> None:
    for engine in ("sglang", "vllm"):
        log = drive(started(engine))
        common = ids(160, 0)
        log.send("a", from_ids([*common, *range(40)]), 4)
        log.virtual.run(1.0)
        second = log.send("b", from_ids([*common, *range(50, 90)]), 4, at_s=1.0)
        other = log.send("c", fresh(200, 9), 4, at_s=1.0)
        log.virtual.run(2.0)
        assert (second.cached, other.cached) == (160, 0)
        assert sum(each.cached_tokens for each in log.forwards) == 160


def test_accepted_drafts_come_as_often_as_planted() -> None:
    one = started("sglang", "drafts-paying:3")  # three drafts, each right in 90 %
    log = drive(one)
    log.send("a", fresh(64, 1), 20_000)
    log.virtual.run(200.0)
    verified = [each for each in log.forwards if each.drafted]
    mean = sum(tokens for each in verified for _, tokens in each.made) / len(verified)
    assert mean == pytest.approx(1 + 0.9 + 0.81 + 0.729, rel=0.03)
    assert all(each.drafted == 3 for each in verified)


def test_an_abandoned_request_gives_its_room_back() -> None:
    for engine in ("sglang", "vllm"):
        one = started(engine)
        log = drive(one)
        request = log.send("a", fresh(500, 1), 10_000)
        log.virtual.run(1.0)
        assert one.scheduler.used > 500
        log.virtual.engine.abort(request)
        log.virtual.run(2.0)
        assert one.scheduler.used == 0
        assert not one.scheduler.busy


def test_a_request_that_can_never_fit_is_told_from_one_that_waits() -> None:
    one = started("sglang", kv_tokens=1024)
    assert one.scheduler.fits(Request("a", fresh(500, 1), 500, 0.0))
    assert not one.scheduler.fits(Request("b", fresh(500, 1), 600, 0.0))


def test_a_slow_front_end_delays_clients_and_not_the_scheduler() -> None:
    slow, plain = (drive(started("sglang", fault)) for fault in ("H304:3", "healthy"))
    for log in (slow, plain):
        for number in range(64):
            log.send(f"r{number}", fresh(16, number), 50)
        log.virtual.run(30.0)
        assert len(log.ended) == 64
    steps = [
        [each.end_s - each.start_s for each in log.forwards if each.batch == 64] for log in (slow, plain)
    ]
    assert sum(steps[0]) / len(steps[0]) == pytest.approx(sum(steps[1]) / len(steps[1]), rel=0.02)
    assert slow.virtual.engine.counters.itl.total > 3 * plain.virtual.engine.counters.itl.total


def test_settings_are_frozen_records() -> None:
    with pytest.raises(AttributeError):
        started("sglang").scheduler.settings.kv_tokens = 1  # type: ignore[misc]
    assert msgspec.structs.asdict(started("vllm").scheduler.settings)["engine"] == "vllm"

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepline.errors import UnknownFact, UsageError
from stepline.facts.catalogue import find_model
from stepline.facts.hardware import find_gpu
from stepline.model.roofline.architecture import Architecture, parse_config
from stepline.model.roofline.decode_floor import Floor, Routing, decode_floor
from stepline.model.roofline.deployment import Deployment
from stepline.model.roofline.forward_cost import cache_work, distinct_experts
from stepline.model.roofline.knee import knee_batch
from stepline.model.roofline.layout import Layout
from stepline.model.roofline.prefill_floor import prefill_floor_ms
from tests.unit.model.roofline.test_architecture import V4_MINI

H200 = find_gpu("h200")


def model(name: str) -> Architecture:
    return parse_config(find_model(name).config, name=name)


FLASH, LLAMA, R1 = model("DeepSeek-V4-Flash"), model("llama-3.1-8b"), model("DeepSeek-R1")


@pytest.mark.parametrize(("batch", "floor_ms"), [(1, 3.14), (8, 3.20), (32, 3.41), (64, 3.69)])
def test_a_dense_model_has_one_floor(batch: int, floor_ms: float) -> None:
    # 256 tokens in and 128 out: about 320 live tokens.
    floors = [
        decode_floor(Deployment(LLAMA, H200), batch=batch, context_tokens=320, routing=routing).total_ms
        for routing in ("strict", "expected")
    ]
    assert floors == pytest.approx([floor_ms, floor_ms], rel=0.02)


def test_distinct_experts_of_v4_flash() -> None:
    (experts,) = FLASH.body.experts
    found = [round(distinct_experts(experts, n, "expected"), 1) for n in (1, 4, 8, 16, 32, 64, 128, 256)]
    assert found == [6, 23.2, 44.2, 80.8, 136.1, 199.9, 243.7, 255.4]
    assert distinct_experts(experts, 256, "strict") == 6
    assert distinct_experts(experts, 256, 300.0) == 256
    with pytest.raises(UnknownFact, match="routing 'uniform'"):
        distinct_experts(experts, 1, "uniform")


@pytest.mark.parametrize(
    ("context", "fp8_mb", "fp4_mb"),
    [
        (1024, 7.2, 6.8),
        (8192, 15.9, 13.2),
        (32768, 35.2, 24.2),
        (131072, 112.3, 68.3),
        (1048576, 831.8, 479.5),
    ],
)
def test_cache_reads_of_v4_flash(context: int, fp8_mb: float, fp4_mb: float) -> None:
    for indexer, wanted in (("auto", fp8_mb), ("fp4", fp4_mb)):
        work = cache_work(
            FLASH.body, Layout(), sequences=1, queries=1, context_tokens=context, indexer_dtype=indexer
        )
        assert sum(part.bytes for part in work) / 1e6 == pytest.approx(wanted, abs=0.06)


@pytest.mark.parametrize(
    ("gpu", "tp", "at_8k", "at_128k", "collectives_ms"),
    [
        ("h200", 8, (0.53, 1.70, 3.64), (0.55, 2.02, 4.93), 0.45),
        ("h200", 4, (0.79, 3.08, 6.80), (0.81, 3.40, 8.09), 0.41),
        ("b200", 4, (0.47, 1.85, 4.08), (0.49, 2.04, 4.85), 0.64),
        ("rtx-pro-6000", 2, (3.50, 15.6, 35.2), (3.55, 16.5, 38.6), 0.44),
        ("rtx-pro-6000", 4, (2.11, 8.25, 18.2), (2.17, 9.11, 21.7), 1.28),
        ("rtx-pro-6000", 8, (1.42, 4.56, 9.76), (1.48, 5.42, 13.2), 2.37),
        ("gb10", 2, (22.96, 102.6, 230.8), (23.3, 108.3, 253.4), 0),
    ],
)
def test_floors_of_v4_flash(
    gpu: str, tp: int, at_8k: tuple[float, ...], at_128k: tuple[float, ...], collectives_ms: float
) -> None:
    for context, wanted in ((8192, at_8k), (131072, at_128k)):
        floors = [
            decode_floor(
                Deployment(FLASH, find_gpu(gpu), Layout(tp=tp)),
                batch=n,
                context_tokens=context,
                routing="expected",
            )
            for n in (1, 16, 64)
        ]
        assert [f.total_ms - f.collectives.ms for f in floors] == pytest.approx(wanted, rel=0.02)
        assert floors[0].collectives.count == 86
        assert floors[0].collectives.ms == pytest.approx(collectives_ms, rel=0.02)


def test_latency_nobody_measured_is_said_not_counted() -> None:
    floor = decode_floor(Deployment(FLASH, find_gpu("gb10"), Layout(tp=2)), batch=1, context_tokens=1)
    assert any("no all-reduce latency" in part for part in floor.not_counted)


def test_expected_slope_of_a_cut_down_v4() -> None:
    def slope_ms(routing: Routing) -> float:
        one, sixteen = (
            decode_floor(
                Deployment(parse_config(V4_MINI), H200), batch=batch, context_tokens=300, routing=routing
            ).total_ms
            for batch in (1, 16)
        )
        return (sixteen - one) / 15

    assert slope_ms("expected") == pytest.approx(0.156, rel=0.02)
    assert 0 < slope_ms("strict") < 0.001


def test_work_by_the_configured_context_is_a_second_line() -> None:
    def floor(live: int, configured: int) -> Floor:
        return decode_floor(
            Deployment(FLASH, find_gpu("rtx-pro-6000"), Layout(tp=4)),
            batch=16,
            context_tokens=live,
            capacity_context_tokens=configured,
            routing="expected",
        )

    short, long = floor(2048, 8192), floor(2048, 1048576)
    assert short.total_ms == long.total_ms
    assert short.configured_total_ms is not None
    assert long.configured_total_ms is not None
    assert short.configured_total_ms > short.total_ms
    # The index keys alone are 21 layers x 262,144 entries x 132 B for each of 16 sequences.
    assert long.configured_total_ms - long.total_ms > 16 * 21 * 262144 * 132 / 1.792e12 * 1e3 * 0.95


def test_speculation_divides_the_step_and_widens_the_verification() -> None:
    plain = decode_floor(
        Deployment(FLASH, H200, Layout(tp=4)), batch=4, context_tokens=8192, routing="expected"
    )
    drafted = decode_floor(
        Deployment(FLASH, H200, Layout(tp=4)),
        batch=4,
        context_tokens=8192,
        routing="expected",
        draft_tokens=3,
        accept_length=2.5,
    )
    assert drafted.total_ms > plain.total_ms
    assert drafted.ms_per_token == pytest.approx(drafted.total_ms / 2.5)
    assert any("draft passes" in part for part in drafted.not_counted)


def test_prefill_is_bound_by_flops_and_by_one_read_of_the_weights() -> None:
    long = prefill_floor_ms(Deployment(LLAMA, H200), 8192)
    flops = 2 * 6.98e9 * 8192 + 32 * 4 * 32 * 128 * 8192**2 / 2
    assert long == pytest.approx(flops / 989e12 * 1e3, rel=0.01)
    weights_ms = 7.505e9 * 2 / 4.8e12 * 1e3
    assert prefill_floor_ms(Deployment(LLAMA, H200), 1) == pytest.approx(weights_ms, rel=0.01)
    halves = prefill_floor_ms(Deployment(LLAMA, H200), 8192, sequences=2)
    assert halves < long
    assert prefill_floor_ms(Deployment(LLAMA, H200), 1024, cached_tokens=7168) < long


def test_a_cache_that_grows_with_the_batch_leaves_no_knee() -> None:
    assert knee_batch(Deployment(LLAMA, H200), context_tokens=100_000) is None
    knee = knee_batch(Deployment(LLAMA, H200), context_tokens=1)
    assert knee is not None
    assert knee == pytest.approx(989e12 / 4.8e12, rel=0.05)


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        (Layout(tp=5), "32 query heads, which tp=5 does not divide; nearest possible: 2, 4, 8"),
        (Layout(tp=0), "tp is 0"),
        (Layout(tp=4, ep=3), "ep=3 does not divide tp=4"),
        (Layout(tp=4, ep=4), "no experts"),
        (Layout(tp=1, pp=64), "fewer than pp=64"),
        (Layout(tp=4, dp=3, dp_attention=True), "multiple"),
    ],
)
def test_an_impossible_layout_is_refused(layout: Layout, message: str) -> None:
    with pytest.raises(UnknownFact, match=message):
        decode_floor(Deployment(LLAMA, H200, layout), batch=1, context_tokens=1)


@pytest.mark.parametrize(
    "odd", [{"batch": 0}, {"context_tokens": -1}, {"accept_length": 0.5}, {"draft_tokens": -1}]
)
def test_a_step_that_cannot_be_is_refused(odd: dict[str, float]) -> None:
    with pytest.raises(UsageError, match="no step decodes"):
        decode_floor(Deployment(LLAMA, H200), **{"batch": 1, "context_tokens": 1, **odd})  # type: ignore[arg-type]


models = st.sampled_from([FLASH, LLAMA, R1])
growing = st.tuples(st.floats(1, 512), st.floats(1, 1e6)).map(lambda pair: (pair[0], pair[0] + pair[1]))
degrees = st.sampled_from([1, 2, 4, 8])


@settings(max_examples=60, deadline=None)
@given(models, degrees, growing, growing)
def test_floors_never_fall_as_work_grows(
    architecture: Architecture, tp: int, batches: tuple[float, float], contexts: tuple[float, float]
) -> None:
    (n, more), (context, longer) = batches, contexts

    def floor(batch: float, tokens: float, routing: str) -> float:
        return decode_floor(
            Deployment(architecture, H200, Layout(tp=tp)), batch=batch, context_tokens=tokens, routing=routing
        ).total_ms

    base = floor(n, context, "expected")
    assert floor(more, context, "expected") >= base
    assert floor(n, longer, "expected") >= base
    assert floor(n, context, "strict") <= base * (1 + 1e-12)


@settings(max_examples=40, deadline=None)
@given(models, degrees, st.floats(1, 512), st.floats(1, 1e6))
def test_shards_together_do_at_least_the_whole(
    architecture: Architecture, tp: int, n: float, context: float
) -> None:
    one = decode_floor(Deployment(architecture, H200), batch=n, context_tokens=context, collectives=False)
    many = decode_floor(
        Deployment(architecture, H200, Layout(tp=tp)), batch=n, context_tokens=context, collectives=False
    )
    for whole, shard in zip(one.components, many.components, strict=True):
        assert shard.bytes * tp >= whole.bytes * (1 - 1e-9)
        assert shard.flops * tp >= whole.flops * (1 - 1e-9)


def test_without_end_of_gpus_the_replicated_parts_remain() -> None:
    many = decode_floor(
        Deployment(FLASH, H200, Layout(tp=64)),
        batch=1,
        context_tokens=8192,
        routing="expected",
        collectives=False,
    )
    # Replicated weights of V4-Flash are 1.291 GB, and every GPU reads the whole cache.
    assert many.bytes > 1.291e9 + 15e6
    assert many.bytes < 1.6e9


def test_without_end_of_sequences_every_expert_is_read() -> None:
    floor = decode_floor(
        Deployment(FLASH, H200, Layout(tp=4)), batch=1e5, context_tokens=1, routing="expected"
    )
    experts = next(part for part in floor.components if part.name == "moe experts")
    assert experts.bytes * 4 == pytest.approx(147.17e9, rel=0.001)
    assert experts.bound == "compute"

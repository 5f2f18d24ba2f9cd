"""Where the reading of a trace turns: on both sides of each number, on traces that lie next to it."""

import pytest

from tests.unit.model.trace.test_summary import condensed
from tests.unit.trace_writer import TraceWriter

NAMES = ("nvjet_a", "RMSNormKernel", "act_and_mul_kernel", "flash_fwd_splitkv_kernel", "argmax_kernel")


def steps(*durations_us, pauses_us=(), kernels=(), graph=False, annotated=True):
    """Steps 1 s apart, each of ten equal kernels (or as many as `kernels` says) with one pause in their middle."""
    writer = TraceWriter()
    for index, whole_us in enumerate(durations_us):
        at, count = 1000.0 + 1e6 * index, kernels[index] if kernels else 10
        if annotated:
            writer.span("user_annotation", "step[DECODE bs=8]", at, 100.0)
        if graph:
            writer.span("cuda_runtime", "cudaGraphLaunch", at + 5, 5.0, correlation=5000 + index)
        begin = at + 20
        for kernel in range(count):
            call = {"correlation": 5000 + index} if graph else {"launched": round(at + 5 + kernel, 3)}
            writer.kernel(NAMES[kernel % 5], round(begin, 3), round(whole_us / count, 3), **call)
            begin += whole_us / count + (pauses_us[index] if pauses_us and kernel == count // 2 - 1 else 0.0)
    return writer


def aside(tmp_path, writer):
    return [step.set_aside or "" for step in condensed(tmp_path, writer).ranks[0].steps]


@pytest.mark.parametrize(("times", "early"), [(1.4, False), (1.6, True)])
def test_a_step_half_as_long_again_is_a_warm_up(tmp_path, times, early):
    assert ("warm-up" in aside(tmp_path, steps(1000 * times, 1000, 1000, 1000, 1000))[0]) is early


@pytest.mark.parametrize(("others", "early"), [(2, False), (3, True)])
def test_it_takes_three_others_to_hold_a_step_against(tmp_path, others, early):
    assert ("warm-up" in aside(tmp_path, steps(2000, *[1000] * others))[0]) is early


@pytest.mark.parametrize(("pause_us", "stalled"), [(1800, False), (2200, True)])
def test_a_step_that_spans_three_times_the_others_is_stalled(tmp_path, pause_us, stalled):
    writer = steps(1000, 1000, 1000, 1000, 1000, pauses_us=(0, pause_us, 0, 0, 0))
    assert ("stalled" in aside(tmp_path, writer)[1]) is stalled


@pytest.mark.parametrize(("pause_us", "stalled"), [(90_000, False), (110_000, True)])
def test_a_pause_of_a_tenth_of_a_second_stalls_a_step(tmp_path, pause_us, stalled):
    writer = steps(1000, 1000, pauses_us=(0, pause_us))
    assert ("stalled" in aside(tmp_path, writer)[1]) is stalled


@pytest.mark.parametrize(("kept", "damaged"), [(12, False), (8, True)])
def test_a_replay_with_less_than_half_its_kernels_is_damaged(tmp_path, kept, damaged):
    writer = steps(1000, 1000, 1000, 1000, 1000, kernels=(20, 20, kept, 20, 20), graph=True, annotated=False)
    assert any("under-recorded" in reason for reason in aside(tmp_path, writer)) is damaged


@pytest.mark.parametrize(("last", "cut"), [(10, False), (8, True)])
def test_a_last_step_that_lacks_kernels_was_cut_off(tmp_path, last, cut):
    writer = steps(1000, 1000, 1000, kernels=(10, 10, last))
    assert ("cut off" in aside(tmp_path, writer)[2]) is cut


def repeated(*distances):
    """Kernels launched one by one, of which `argmax` recurs at these distances and no other name twice."""
    writer, at = TraceWriter(), 1000.0
    for distance in distances:
        for index in range(distance):
            name = "argmax_kernel" if index == 0 else f"nvjet_{at:.0f}"
            writer.kernel(name, at + 6, 2.0, launched=at)
            at += 10
    return writer


@pytest.mark.parametrize(
    ("distances", "found"),
    [
        ((12, 12, 12), True),
        ((9, 9, 9), False),
        ((20, 20), False),
        ((6,) * 8, True),
        ((4,) * 10, False),
        ((10, 10, 10, 10, 10, 11, 10, 11, 10), True),
        ((10, 11, 10, 12, 10, 13, 10, 14, 10), False),
    ],
    ids=["36 kernels", "27 kernels", "twice", "every 6", "every 4", "three of four alike", "half alike"],
)
def test_what_repeats_like_a_step(tmp_path, distances, found):
    ranks = condensed(tmp_path, repeated(*distances)).ranks
    assert any(step.found_by == "repetition" for rank in ranks for step in rank.steps) is found


@pytest.mark.parametrize(
    ("apart_us", "share", "cut_off"),
    [(120_000, 0.008, True), (80_000, 0.008, False), (120_000, 0.012, False)],
    ids=["120 ms before", "80 ms before", "over a hundredth of the work"],
)
def test_a_stray_lies_a_tenth_of_a_second_off_and_is_a_hundredth_of_the_work(
    tmp_path, apart_us, share, cut_off
):
    writer = TraceWriter()
    writer.span("user_annotation", "step[DECODE bs=8]", 900.0, 300_000.0)
    writer.kernel("elementwise_kernel", 1000.0, 1000 * share, launched=950.0)
    for index in range(10):
        writer.kernel(NAMES[index % 5], 1000.0 + apart_us + 100 * index, 100.0, launched=960.0 + index)
    (step,) = condensed(tmp_path, writer).ranks[0].steps
    assert (step.span_ms < 2) is cut_off


@pytest.mark.parametrize(("over_us", "doubted"), [(800, False), (1200, True)])
def test_work_that_runs_a_millisecond_past_later_work_is_doubted(tmp_path, over_us, doubted):
    writer = steps(1000, 1000)
    writer.kernel("nvjet_a", 500_000.0, 100.0 + over_us, launched=499_000.0)
    writer.kernel("nvjet_a", 500_100.0, 10.0, launched=499_500.0)
    doubts = condensed(tmp_path, writer).ranks[0].doubts
    assert any("past later work" in doubt.text for doubt in doubts) is doubted


@pytest.mark.parametrize(("pause_us", "told"), [(90_000, False), (110_000, True)])
def test_a_pause_of_a_tenth_of_a_second_is_told(tmp_path, pause_us, told):
    writer = TraceWriter()
    for index in range(2):
        writer.span("user_annotation", "step[DECODE bs=8]", 1000 + pause_us * index, 100.0)
        writer.kernel("nvjet_a", 1020.0 + (pause_us + 50) * index, 50.0, launched=1005.0 + pause_us * index)
    doubts = condensed(tmp_path, writer).ranks[0].doubts
    assert any("pauses for" in doubt.text for doubt in doubts) is told


def chain(*names, factor=65, apart=0):
    """A graph with that many kernels sized by the context, `apart` others between the third and the fourth."""
    writer = TraceWriter()
    for step in range(3):
        at = 1000.0 + 2000.0 * step
        writer.span("user_annotation", "step[DECODE bs=16]", at, 100.0)
        kernels = [(name, 100.0, (factor * (2 + index), 1, 1)) for index, name in enumerate(names)]
        kernels[3:3] = [("nvjet_logits", 5.0, (132, 1, 1))] * apart
        writer.graph([("nvjet_qkv", 20.0, (132, 1, 1)), *kernels], at + 5, at + 20, 1000 + step)
    return writer


FIVE = ("gather_kernel", "copy_kernel", "clamp_kernel", "mul_kernel", "reduce_kernel")
SIX = (*FIVE, "masked_fill_kernel")


@pytest.mark.parametrize(
    ("writer", "context", "found"),
    [
        (chain(*FIVE), 65 * 1024, True),
        (chain(*FIVE[:4]), 65 * 1024, False),
        (chain(*FIVE[:2], FIVE[0], FIVE[1], FIVE[2]), 65 * 1024, True),
        (chain(*FIVE[:2], FIVE[0], FIVE[1], FIVE[0]), 65 * 1024, False),
        (chain(*SIX, factor=41), 40 * 1024, True),
        (chain(*SIX, factor=25), 24 * 1024, False),
        (chain(*SIX, factor=68), 68 * 1024, True),
        (chain(*SIX, factor=52), 52 * 1024, False),
    ],
    ids=["5 kernels", "4 kernels", "3 names", "2 names", "factor 41", "factor 25", "17 rows", "13 rows"],
)
def test_what_makes_a_chain_of_the_context(tmp_path, writer, context, found):
    assert bool(condensed(tmp_path, writer, context_tokens=context).group().context) is found


@pytest.mark.parametrize(("apart", "kernels"), [(3, 9), (4, 6)])
def test_a_chain_holds_up_to_three_other_kernels_in_a_row(tmp_path, apart, kernels):
    """Behind a fourth another chain begins; the three before it are too few for one of their own."""
    writer = chain(*SIX[:3], *SIX, apart=apart)
    (work,) = condensed(tmp_path, writer, context_tokens=65 * 1024).group().context
    assert (work.chains, work.kernels) == (1, kernels)


@pytest.mark.parametrize(("pause_us", "idle"), [(90_000, True), (110_000, False)])
def test_a_pause_of_a_tenth_of_a_second_is_no_gap_between_steps(tmp_path, pause_us, idle):
    writer = TraceWriter()
    for index in range(4):
        at = 1000.0 + (pause_us + 100) * index
        writer.span("user_annotation", "step[DECODE bs=8]", at, 100.0)
        writer.kernel("nvjet_a", at + 20, 100.0, launched=at + 5)
    (group,) = condensed(tmp_path, writer).ranks[0].groups
    assert (sum(cause.traced_ms for cause in group.idle) > 50) is idle

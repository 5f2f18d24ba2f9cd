"""What the evidence says about decode graphs and the host's share of a step."""

import msgspec

from stepline.evidence.origin import Origin
from stepline.model.measure.counters import over_recording
from stepline.model.measure.thresholds import T as SHARED
from stepline.model.picture.picture import Picture
from stepline.model.picture.sign import sign
from stepline.model.signs.cached_prompts import cached_share
from stepline.model.signs.recompute import own_prompt_floor_ms
from stepline.threshold import Threshold


class T:
    """Thresholds of this module."""

    eager = Threshold(
        0.95,
        "share of decode passes",
        why="From here decode runs without graphs: all but a few passes.",
    )
    edge = Threshold(
        1.06,
        "batch over the largest graph",
        why="Mean batches this close are the graph's own: streams come and go at a level's edges.",
    )
    launched_alone = Threshold(
        0.9,
        "launches over kernels",
        why="An eager step launches each kernel by itself.",
        source="the H200 captures read 1.0, and 0.12 where a graph holds most kernels",
    )
    gpu_idle = Threshold(
        0.15,
        "idle share of the GPU",
        why="The host is worth naming.",
        source="healthy H200 servers read 1 to 6 % idle in the same counters",
    )
    covered = Threshold(
        1.3,
        "prompt's cost over its floor",
        why="Where graphs cover it.",
        source="an H200 server captured up to 512 tokens took 1.05 times for 256-token prompts beside "
        "32 answers, SGLang's own forwards for prompts 1.7 times",
    )


class GraphUse(msgspec.Struct, frozen=True, kw_only=True):
    """How decode steps were launched. Prefill lines are never counted: engines run prefill eagerly on purpose."""

    graph_passes: float | None
    eager_passes: float | None
    graph_lines: int
    eager_lines: int
    setting: bool | None
    source: str
    origin: Origin | None

    @property
    def eager_share(self) -> float | None:
        """Share of decode passes without a graph, by the counter or else by the log's lines; None when unseen."""
        if self.graph_passes is not None or self.eager_passes is not None:
            total = (self.graph_passes or 0.0) + (self.eager_passes or 0.0)
            return (self.eager_passes or 0.0) / total if total else None
        total_lines = self.graph_lines + self.eager_lines
        return self.eager_lines / total_lines if total_lines else None

    @property
    def off(self) -> bool:
        """True when all but a few decode passes were seen to be eager, or none was seen and the setting says so."""
        share = self.eager_share
        return self.setting is False if share is None else share >= T.eager


@sign
def beyond_graphs(picture: Picture) -> bool:
    """True when more requests run than decode graphs are captured for, and no decode line says it used one."""
    sizes, load = picture.run.server.decode_graph_sizes, picture.load
    if sizes is None or not sizes.value or load is None:
        return False
    largest = max(sizes.value)
    if any(report.graph for report in picture.run.decodes if report.running > largest):
        return False
    return load.running / load.ranks > largest * T.edge


@sign
def traced_eager(picture: Picture) -> bool | None:
    """Whether the traced decode step was launched kernel by kernel; None without a trace of one."""
    group = None if picture.traced is None else picture.traced.group
    if group is None or not group.kernels:
        return None
    return group.graph_launches == 0 and group.launches >= T.launched_alone * group.kernels


@sign
def beside_prompt(picture: Picture) -> float | None:
    """Tokens of a forward that computes one prompt beside the load's answers, where its engine puts both in one.

    Only such engines count a forward's graph in tokens (vLLM: cudagraph_capture_sizes), and they tell how their
    graphs run. None where they are no such engine, or the prompt's length is not known.
    """
    run, load = picture.run, picture.load
    if run.server.graph_mode is None or load is None or load.input_tokens is None:
        return None
    cached, _ = cached_share(picture)
    fresh = load.input_tokens * (1 - (cached or 0.0))
    limit = run.server.chunked_prefill_tokens
    chunk = fresh if limit is None else min(fresh, limit.value)
    return load.running / load.ranks + chunk


@sign
def prompts_beyond_graphs(picture: Picture) -> float | None:
    """Tokens of a mixed batch larger than the largest CUDA graph, so that it runs eagerly; else None."""
    sizes, tokens = picture.run.server.decode_graph_sizes, beside_prompt(picture)
    if sizes is None or not sizes.value or tokens is None or beyond_graphs(picture):
        return None
    return tokens if tokens > max(sizes.value) else None


@sign
def idles_in_decode(picture: Picture, busy: "BusyShare") -> bool:
    """True when the GPU idles inside decode steps: by a trace, or because the time beside them cannot hold it."""
    traced, loop = picture.traced, picture.loop
    if traced is not None and traced.busy_share is not None:
        return traced.busy_share < 1 - T.gpu_idle
    return loop is not None and (1 - busy.share) - (1 - loop.decode_share) >= T.gpu_idle


@sign
def idles_beside_prompts(picture: Picture, busy: "BusyShare") -> bool:
    """True if eager mixed batches explain the GPU's idle time: it fits into the excess prefill time."""
    loop = picture.loop
    if loop is None or prompts_beyond_graphs(picture) is None:
        return False
    floor_ms = own_prompt_floor_ms(picture) or 0.0
    excess_ms = max(0.0, loop.other_ms_per_request - T.covered * floor_ms)
    beside = 1 - loop.decode_share
    return (
        beside > 0
        and beside * excess_ms / loop.other_ms_per_request >= SHARED.worth
        and 1 - busy.share >= T.gpu_idle
        and not idles_in_decode(picture, busy)
    )


@sign
def graph_use(picture: Picture) -> GraphUse:
    """Decode graph use by counter, log lines and setting."""
    run = picture.run
    counted = over_recording(run)
    passes = () if counted is None else (counted.decode_graph_passes, counted.decode_eager_passes)
    scrape = counted if any(count is not None for count in passes) else None
    flags = [report.graph for report in run.decodes if report.graph is not None]
    flags += [row.graph for row in run.step_rows if row.graph is not None]
    setting = run.server.decode_graphs
    eager = next((report.origin for report in run.decodes if report.graph is False), None)
    return GraphUse(
        graph_passes=None if scrape is None else scrape.decode_graph_passes,
        eager_passes=None if scrape is None else scrape.decode_eager_passes,
        graph_lines=sum(flags),
        eager_lines=len(flags) - sum(flags),
        setting=None if setting is None else setting.value,
        source="decode pass counter" if scrape is not None else "decode lines of the log",
        origin=scrape.origin if scrape is not None else eager,
    )


class BusyShare(msgspec.Struct, frozen=True, kw_only=True):
    """How busy the GPU is under load, and the instrument that says so."""

    share: float
    instrument: str


@sign
def gpu_busy(picture: Picture) -> BusyShare | None:
    """The GPU's busy share by unprofiled counters, else by trace busy time over unprofiled steps."""
    counted, traced = gpu_busy_share(picture), None if picture.traced is None else picture.traced.busy_share
    if counted is not None:
        return BusyShare(share=counted[0], instrument=f"median of {counted[1]} unprofiled samples")
    if traced is not None:
        return BusyShare(share=traced, instrument="busy time in the trace over the unprofiled step")
    return None


@sign
def gpu_busy_share(picture: Picture) -> tuple[float, int] | None:
    """(busy share, samples) of the GPU at the load, else at the nearest sampled batch; None when not sampled."""
    use = picture.gpu_use
    if use is None and picture.load is not None and picture.gpu_use_by_running:
        running = picture.load.running
        use = picture.gpu_use_by_running[min(picture.gpu_use_by_running, key=lambda n: abs(n - running))]
    if use is None or use.graphics_busy is None:
        return None
    return use.graphics_busy, use.samples

"""A TraceSummary on a terminal, 80 columns wide: the answer first, then its proof."""

import re

from rich.console import Console
from rich.table import Table

from stepline import units
from stepline.evidence.trace import RankTrace, StepGroup, TraceKernel, TraceSummary
from stepline.facts.kernel_family import family
from stepline.model.trace import span_at

_OTHER_CONTEXT = 8192
"""Tokens shown for comparison when work follows a larger configured context."""


def show(summary: TraceSummary, top: int) -> None:
    """Print the first rank in full and the others by what differs."""
    console = Console(width=min(100, max(80, Console().width)), highlight=False, soft_wrap=False)
    first = summary.ranks[0]
    for sentence in answers(summary):
        console.print(sentence)
    for group in first.groups[:3]:
        _group(console, group, top if group is first.groups[0] else 5)
    if not first.groups:
        _components(console, first)
        _kernels(console, first.top[:top])
    _steps(console, first)
    _ranks(console, summary)
    doubts = [doubt for rank in summary.ranks for doubt in rank.doubts] + list(summary.doubts)
    for text in dict.fromkeys(doubt.text for doubt in doubts):
        console.print(f"[yellow]Doubt:[/] {text}.")


def answers(summary: TraceSummary) -> list[str]:
    """The sentences that answer before any table."""
    rank = summary.ranks[0]
    group = summary.group("decode") or next(iter(rank.groups), None)
    if group is None:
        share = units.percent(rank.busy_ms / rank.span_ms) if rank.span_ms else "?"
        return [
            (
                f"No repeated step was found: {units.ms(rank.busy_ms)} of GPU work in "
                f"{units.ms(rank.span_ms)} ({share})."
            )
        ]
    dearest = group.components[0]
    share = units.percent(dearest.busy_ms / group.busy_ms)
    work = f"{units.ms(group.busy_ms)} of GPU work a step, {share} of it {dearest.component}"
    sentences = [f"[bold]{_title(group)}: {work}.[/]"]
    if group.busy_share is not None and group.unprofiled_step_ms:
        idle = max(0.0, group.unprofiled_step_ms - group.busy_ms)
        sentences.append(
            f"The GPU is busy {units.percent(group.busy_share)} of the unprofiled "
            f"{units.ms(group.unprofiled_step_ms)} step; "
            f"{units.ms(idle)} is idle{_causes(group)}."
        )
    else:
        sentences.append(
            "How busy the GPU is in truth needs a step time measured without the profiler (--step-ms): "
            f"within the step's GPU span it is {units.percent(group.busy_in_span)}, at least."
        )
    for shaped in group.context:
        told = (
            f"the configured context of {shaped.context_tokens:,}"
            if shaped.context_tokens
            else "a padded extent, not live tokens"
        )
        each = (
            f", {units.ms(shaped.per_chain_per_request_ms)} a layer and request"
            if shaped.per_chain_per_request_ms
            else ""
        )
        formula = (
            f" = {shaped.context_tokens:,} / {shaped.divisor} + {shaped.pad}" if shaped.context_tokens else ""
        )
        sentences.append(
            f"[bold]{units.ms(shaped.busy_ms)} a step is sized by {told}[/]: {shaped.kernels:.0f} "
            f"kernels in {shaped.chains:.0f} chains "
            f"share the factor {shaped.factor:,}{formula}{each}."
        )
        if (
            shaped.context_tokens
            and shaped.context_tokens > _OTHER_CONTEXT
            and (span := span_at(group, _OTHER_CONTEXT))
        ):
            host = group.host_busy_ms
            binds = (
                f"; then the host binds (up to {units.ms(host)} a step under the profiler)"
                if host and host > span
                else ""
            )
            sentences.append(
                f"Configured for {_OTHER_CONTEXT:,} tokens the step's graph would take "
                f"{units.ms(span)}{binds}."
            )
    if group.exposed_communication_ms > 0:
        sentences.append(
            f"{units.ms(group.exposed_communication_ms)} a step is communication that nothing hides."
        )
    return sentences


def _title(group: StepGroup) -> str:
    batch = f" at batch {group.batch}" if group.batch is not None else ""
    return f"{group.kind.capitalize()}{batch}"


def _causes(group: StepGroup) -> str:
    total = sum(cause.traced_ms for cause in group.idle)
    named = (
        [f"{cause.cause} {units.percent(cause.traced_ms / total)}" for cause in group.idle[:3]]
        if total
        else []
    )
    return f" (in the trace's gaps: {', '.join(named)})" if named else ""


def _group(console: Console, group: StepGroup, top: int) -> None:
    aside = f", {group.set_aside} set aside" if group.set_aside else ""
    graph = f"graph of {units.ms(group.graph_span_ms)}" if group.graph_span_ms else "no graph"
    console.print(
        f"\n[bold]{_title(group)}[/]: {group.steps} steps by {group.found_by}{aside}; "
        f"{group.kernels:.0f} kernels, "
        f"{group.launches:.0f} launches, {graph}"
    )
    table = Table(box=None, pad_edge=False)
    table.add_column("component")
    for title in ("busy", "share", "kernels"):
        table.add_column(title, justify="right")
    for part in group.components:
        share = part.busy_ms / group.busy_ms if group.busy_ms else 0.0
        table.add_row(part.component, units.ms(part.busy_ms), units.percent(share), f"{part.kernels:.0f}")
    console.print(table)
    _kernels(console, group.top[:top])


def _components(console: Console, rank: RankTrace) -> None:
    for part in rank.totals:
        console.print(f"  {part.component:16} {units.ms(part.busy_ms):>10}  {part.kernels:.0f} kernels")


def _kernels(console: Console, kernels: tuple[TraceKernel, ...]) -> None:
    table = Table(box=None, pad_edge=False)
    table.add_column("busy/step", justify="right", no_wrap=True)
    table.add_column("×", justify="right")
    table.add_column("grid", justify="right", no_wrap=True)
    table.add_column("waves", justify="right")
    table.add_column("occ.", justify="right")
    table.add_column("kernel", overflow="fold")
    for kernel in kernels:
        grid = "×".join(str(n) for n in kernel.grid if n > 1) or "1" if kernel.grid else ""
        notes = [
            kernel.component if kernel.found_by == "name" else f"{kernel.component} by {kernel.found_by}"
        ]
        notes += [kernel.path] if kernel.path == "tensor" else []
        notes += [f"{units.size(kernel.byte_s)}/s"] if kernel.byte_s else []
        notes += [f"{kernel.flop_s / 1e12:.3g} TFLOP/s"] if kernel.flop_s else []
        notes += ["context-shaped"] if kernel.context_multiple else []
        notes += _read_of(kernel.name)
        site = f"\n[dim]{kernel.site}[/]" if kernel.site else ""
        table.add_row(
            units.ms(kernel.busy_ms),
            f"{kernel.per_step:.0f}",
            grid,
            units.fmt(kernel.waves, 2) if kernel.waves is not None else "",
            units.percent(kernel.occupancy) if kernel.occupancy is not None else "",
            f"{short(kernel.name)} [dim]({', '.join(notes)})[/]{site}",
        )
    if kernels:
        console.print(table)


def _read_of(name: str) -> list[str]:
    """What reading the kernel's source told of how it works."""
    known = family(name)
    again = {
        "slot": "reads weights once for each token and expert",
        "head": "reads the cache once for each head",
    }
    return [
        *([again[known.rereads]] if known.rereads else []),
        *(["as long as the configured context"] if known.sized == "configured" else []),
        *([f"in place of {known.fallback}"] if known.fallback else []),
    ]


def short(name: str) -> str:
    """A kernel's name without return type, arguments and template noise."""
    bare = re.sub(r"^void |\(anonymous namespace\)::|at::native::|std::", "", name)
    bare = re.split(r"\((?!anonymous)", bare)[0]
    inner = (
        re.search(r"(\w+)(?:_kernel_cuda|_kernel_impl|Functor|_cuda\b)", name.split("<", 1)[1])
        if "<" in name
        else None
    )
    head = bare.split("<")[0]
    return f"{head}<{inner[1]}>" if inner and "elementwise" in head else head[:60]


def _steps(console: Console, rank: RankTrace) -> None:
    aside = [step for step in rank.steps if step.set_aside]
    if aside:
        console.print(f"\nSet aside ({len(aside)} steps):")
        for step in aside[:5]:
            console.print(f"  {step.kind} at {units.ms(step.start_ms)}: {step.set_aside}")


def _ranks(console: Console, summary: TraceSummary) -> None:
    for wait in summary.waits:
        whom = f", mostly for rank {wait.waited_for}" if wait.waited_for is not None else ""
        console.print(
            f"Rank {wait.rank}: {wait.collectives} collectives, {units.ms(wait.wait_ms)} waiting{whom}, "
            f"{units.ms(wait.transfer_ms)} moving data; last to arrive {wait.last} times"
        )

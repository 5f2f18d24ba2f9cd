"""What two published diagnosers say of simulated vLLM servers, beside stepline on the same pages.

Run: python benchmarks/rivals.py --bin VENV/bin [--seed 0] [--jobs 2], with a throw-away environment that has both:

    python -m venv VENV && VENV/bin/pip install vllm-doctor==0.6.0 inferpilot==0.1.0

Both read vLLM's metrics page alone, so only that engine's cases are asked and stepline gets nothing else here either.
Each server is scraped twice under the load of the case's last level. inferpilot is given both pages, vllm-doctor (which
reads a URL) the second one. What they say is mapped to causes in their favour: a name counts when it could mean the
planted cause; findings that name a symptom (a latency, a low rate) name no cause.
"""

import argparse
import json
import os
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import msgspec

from stepline.errors import SteplineError
from stepline.facts.catalogue import find_model
from stepline.facts.hardware import find_gpu
from stepline.lab.sim.captures.capture import EPOCH_S, write_capture
from stepline.lab.sim.captures.cases import Case, cases
from stepline.lab.sim.captures.load import VirtualClient
from stepline.lab.sim.engine import Engine
from stepline.lab.sim.faults import Base
from stepline.lab.sim.start import start
from stepline.lab.sim.surfaces import surface
from stepline.lab.sim.virtual import Virtual
from stepline.score.scores import Share
from stepline.tasks.diagnose import diagnose
from stepline.tasks.setup import SetupRequest

POOL = {"kv-capacity-bound", "kv-preemption"}
MEANS: dict[str, set[str]] = {
    "kv_capacity_bound_preempting": POOL,
    "near_capacity": POOL,
    "kv_cache_pressure": POOL,
    "preemption_pressure": POOL,
    "queue_pressure": {"batch-capped", "kv-capacity-bound"},
    "queue_latency": {"batch-capped", "kv-capacity-bound"},
    "prefix_cache_efficiency": {"prefix-cache-distortion"},
}
"""What each tool's words could mean; all others name no cause."""
SOUND = {"healthy_or_underutilized"}
TOOLS = ("stepline", "inferpilot", "vllm-doctor")


class Said(msgspec.Struct, frozen=True):
    """One tool's answer to one case."""

    case: str
    expected: str
    tool: str
    words: tuple[str, ...]
    causes: frozenset[str]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bin", type=Path, required=True, help="folder with both commands")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    args = parser.parse_args()
    drawn = list(cases(args.seed, engines=("vllm",)))
    with ProcessPoolExecutor(args.jobs) as pool:
        said = [each for some in pool.map(partial(ask, tools=args.bin.absolute()), drawn) for each in some]
    print(f"seed {args.seed}, {len(drawn)} vLLM servers, by two metrics pages alone")
    for tool in TOOLS:
        print(_line(tool, [each for each in said if each.tool == tool]))


def ask(case: Case, tools: Path) -> list[Said]:
    """Everything that is said of one case."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        expected = write_capture(case, folder / "captures").finding
        pages = _pages(case)
        for name, page in zip(("before.txt", "after.txt"), pages, strict=True):
            (folder / name).write_text(page)
        paths = [str(folder / name) for name in ("before.txt", "after.txt")]
        answers = {
            "stepline": _stepline(paths, case),
            "inferpilot": _inferpilot(tools, paths),
            "vllm-doctor": _vllm_doctor(tools, pages[1], folder),
        }
    return [Said(case.name, expected, tool, words, causes) for tool, (words, causes) in answers.items()]


def _pages(case: Case) -> tuple[str, str]:
    """The metrics page twice under the last level: after its ramp and at its end."""
    level = case.levels[-1]
    need = level.concurrency * (level.input_tokens + level.output_tokens)
    base = Base(step_ms=0.0, streams=level.concurrency, need_tokens=need)
    config = find_model(case.model).config
    config = config if case.layers is None else config | {"num_hidden_layers": case.layers}
    started = start(
        case.engine, case.model, config, find_gpu(case.gpu), fault=case.planted, strength=case.strength,
        seed=case.seed, tp=case.tp, base=base,
    )  # fmt: skip
    virtual = Virtual(Engine(started.scheduler, started.front))
    face = surface(started, virtual, lambda _: None, epoch_s=EPOCH_S, address=("127.0.0.1", 8000))
    seconds = level.seconds or 0.0
    pages: dict[str, str] = {}

    def scrape(now_s: float) -> None:
        if now_s >= 0.5 * seconds:
            pages.setdefault("before", face.page())
        if now_s < seconds - 0.1 or "after" not in pages:
            pages["after"] = face.page() if now_s >= 0.9 * seconds else ""

    virtual.engine.on_tick.append(scrape)
    VirtualClient(virtual, seed=case.seed, epoch_s=EPOCH_S).level(level)
    return pages["before"], pages["after"]


def _stepline(paths: Sequence[str], case: Case) -> tuple[tuple[str, ...], frozenset[str]]:
    known = SetupRequest(model=case.model, gpu=case.gpu, tp=case.tp)
    try:
        found = diagnose(paths, known).findings
    except SteplineError:
        found = ()
    return tuple(f"{each.name} ({each.status})" for each in found), frozenset(each.name for each in found[:1])


def _inferpilot(tools: Path, paths: Sequence[str]) -> tuple[tuple[str, ...], frozenset[str]]:
    told = json.loads(_run([str(tools / "inferpilot"), "inspect", *paths, "--json"]))
    return _meaning([str(told["verdict"])])


def _vllm_doctor(tools: Path, page: str, folder: Path) -> tuple[tuple[str, ...], frozenset[str]]:
    with _served(page) as url:
        out = _run([str(tools / "vllm-doctor"), "diagnose", url, "--output", "json"], home=folder)
    told = json.loads(out[out.index("{") :])
    return _meaning([str(each["id"]) for each in told["checks"] if each["finding"] is not None])


def _meaning(words: Sequence[str]) -> tuple[tuple[str, ...], frozenset[str]]:
    causes: set[str] = set().union(*(MEANS.get(word, set()) for word in words))
    return tuple(word for word in words if word not in SOUND), frozenset(causes)


def _run(command: Sequence[str], home: Path | None = None) -> str:
    environment = {**os.environ, "NO_COLOR": "1"} | ({} if home is None else {"HOME": str(home)})
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if not done.stdout.strip():
        raise SystemExit(f"{command[0]} said nothing: {done.stderr[-2000:]}")
    return done.stdout


@contextmanager
def _served(page: str) -> Iterator[str]:
    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = page.encode()
            self.send_response(200)
            self.send_header("content-type", "text/plain; version=0.0.4")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/metrics"
    finally:
        server.shutdown()


def _line(tool: str, said: Sequence[Said]) -> str:
    sick = [each for each in said if each.expected != "healthy"]
    sound = [each for each in said if each.expected == "healthy"]
    named = Share(sum(each.expected in each.causes for each in sick), len(sick))
    spoke = Share(sum(bool(each.words) for each in sick), len(sick))
    alarmed = Share(sum(bool(each.words) for each in sound), len(sound))
    return (
        f"{tool:12} cause named {_share(named)}   said anything {_share(spoke)}   "
        f"anything said of sound servers {_share(alarmed)}"
    )


def _share(share: Share) -> str:
    return f"{share.hits}/{share.total}" + ("" if share.value is None else f" = {share.value:.2f}")


if __name__ == "__main__":
    main()

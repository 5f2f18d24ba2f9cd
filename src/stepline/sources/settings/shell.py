"""A shell line taken apart: commands, assignments before them, what a container or a wrapper adds."""

import re
import shlex
from collections.abc import Iterator, Sequence

MAX_TEXT = 100_000
"""Characters of a launch command that are read."""
MAX_WORDS = 5000
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w{0,99})=(.*)", re.DOTALL)
_BREAKS = {"&&", "||", ";", "|", "&", "(", ")", "{", "}"}
CONTAINER = {
    "--cpus": "container.cpus",
    "--cpuset-cpus": "container.cpuset",
    "--cpuset-mems": "container.cpuset_mems",
    "--cpu-shares": "container.cpu_shares",
    "-c": "container.cpu_shares",
    "--memory": "container.memory",
    "-m": "container.memory",
    "--shm-size": "container.shm_size",
    "--ipc": "container.ipc",
    "--network": "container.network",
    "--net": "container.network",
    "--gpus": "container.gpus",
    "--cap-add": "container.cap_add",
}
"""Options of `docker run` and `podman run`, by the catalogue's names."""
_FLAGS_ONLY = {
    "-d", "-i", "-t", "-it", "-ti", "-dit", "-itd", "--rm", "--privileged", "--init", "--detach", "--tty",
    "--interactive", "-P", "--publish-all", "--read-only", "--no-healthcheck", "--oom-kill-disable",
}  # fmt: skip
WRAPPERS = {
    "taskset": ("-c", "process.cpu_affinity"),
    "nice": ("-n", "process.nice"),
    "numactl": ("", "process.numa"),
    "chrt": ("", "process.scheduling"),
}
"""Programs that start another with limits of theirs: the option that says so, and the catalogue's name."""


def commands(text: str) -> Iterator[list[str]]:
    """The words of each command of a shell text; a quote that never closes ends at its line."""
    text = re.sub(r"\\\r?\n", " ", text[:MAX_TEXT])
    count = 0
    for line in _logical_lines(text):
        words: list[str] = []
        for word in line:
            count += 1
            if count > MAX_WORDS:
                break
            if word in _BREAKS:
                if words:
                    yield words
                words = []
            else:
                words.append(word.removesuffix(";") if word.endswith(";") else word)
                if word.endswith(";"):
                    yield words
                    words = []
        if words:
            yield words


def _logical_lines(text: str) -> Iterator[list[str]]:
    pending = ""
    for line in text.splitlines():
        whole = f"{pending}\n{line}" if pending else line
        if not pending and line.lstrip().startswith("#"):
            continue
        try:
            yield shlex.split(whole.removeprefix("$ "), comments=True)
            pending = ""
        except ValueError:
            pending = whole
    if pending:
        yield pending.replace('"', " ").replace("'", " ").split()


def assignments(words: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Variables set before a command (`A=1 env B=2 export C=3 …`), and the words behind them."""
    found: dict[str, str] = {}
    at = 0
    while at < len(words):
        matched = _ASSIGNMENT.fullmatch(words[at])
        if matched is not None:
            found[matched[1]] = matched[2]
        elif words[at] not in ("env", "export", "sudo", "exec", "nohup", "time", "set", "-x", "-e", "-E"):
            break
        at += 1
    return found, list(words[at:])


def wrappers(words: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """What `taskset`, `numactl`, `nice` and `chrt` add, and the command that they start."""
    found: dict[str, str] = {}
    rest = list(words)
    while rest and (entry := WRAPPERS.get(rest[0].rsplit("/", 1)[-1])):
        option, name = entry
        taken = 1
        values: list[str] = []
        while taken < len(rest) and (rest[taken].startswith("-") or (values and values[-1] == option != "")):
            values.append(rest[taken])
            taken += 1
        if name == "process.scheduling" and taken < len(rest):
            values.append(rest[taken])
            taken += 1
        said = [value for value in values if value != option]
        found[name] = " ".join(said) if said else "10" if name == "process.nice" else ""
        found[name] = found[name].removeprefix(option).strip() if option else found[name]
        rest = rest[taken:]
    return found, rest


def container(words: Sequence[str]) -> tuple[dict[str, str], dict[str, str], list[str]] | None:
    """(container limits, variables, image and its words) of `docker run …`; None for anything else."""
    starts = [
        at for at, word in enumerate(words[:4]) if word.rsplit("/", 1)[-1] in ("docker", "podman", "nerdctl")
    ]
    if not starts or "run" not in words[starts[0] : starts[0] + 4]:
        return None
    limits: dict[str, str] = {}
    variables: dict[str, str] = {}
    entry: list[str] = []
    at = words.index("run", starts[0]) + 1
    while at < len(words) and words[at].startswith("-"):
        option, attached, value = words[at].partition("=")
        if option in _FLAGS_ONLY:
            at += 1
            continue
        if not attached:
            value = words[at + 1] if at + 1 < len(words) else ""
            at += 1
        at += 1
        if option in ("-e", "--env"):
            matched = _ASSIGNMENT.fullmatch(value)
            if matched is not None:
                variables[matched[1]] = matched[2]
        elif option == "--ulimit" and value.startswith("memlock="):
            limits["container.ulimit_memlock"] = value.removeprefix("memlock=")
        elif option == "--entrypoint":
            entry = value.split()
        elif option in CONTAINER:
            limits[CONTAINER[option]] = value
    image = list(words[at : at + 1])
    return limits, variables, [*image, *entry, *words[at + 1 :]]

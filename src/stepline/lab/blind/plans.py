"""What a campaign draws from: a release's own arguments and variables, the models and flags of a matrix of the lab."""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from stepline.facts.settings import Setting, Unknown, catalogue
from stepline.lab.blind.arguments import Argument, Type
from stepline.lab.blind.change import Server
from stepline.lab.blind.draw import Plan
from stepline.lab.real.matrix import Matrix, read_matrix

_TYPES: dict[str, Type] = {"bool": "bool", "int": "int", "float": "float", "json": "json"}
SHIPPED = Path(__file__).parent.parent / "real"


def plan_of(engine: str, *, models: int = 3) -> Plan:
    """The plan of a shipped matrix: its first model is the twin's, `models` of them can be drawn."""
    return plan_from(read_matrix(SHIPPED / f"{engine}.toml"), models=models)


def plan_from(matrix: Matrix, *, models: int) -> Plan:
    """The plan of a matrix: the flags, environment and load that all of its cases have are the twin's."""
    names = list(matrix.model)[:models]
    plain = next(case for case in matrix.case if case.model == names[0] and not case.fault)
    twin = Server(
        model=names[0],
        flags=plain.flags,
        environment=plain.environment,
        concurrency=tuple(sorted(plain.load.concurrency)),
        input_tokens=plain.load.input_tokens,
        output_tokens=plain.load.output_tokens,
    )
    return Plan(
        engine=matrix.engine,
        version=matrix.version,
        gpu=matrix.gpu,
        models={name: matrix.model[name] for name in names},
        twin=twin,
        arguments=tuple(
            _as_started(argument, plain.flags) for argument in arguments_at(matrix.engine, matrix.version)
        ),
        environment=dict(_variables(matrix.engine, matrix.version)),
    )


def arguments_at(engine: str, version: str) -> Iterator[Argument]:
    """Arguments of a release, in the order of their names. What anybody judged of them is not looked at."""
    for name, setting in sorted(catalogue(engine).settings.items()):
        default = setting.default_at(version)
        if "." in name or not setting.spelled or _absent(default):
            continue
        flag = setting.spelled[0]
        yield Argument(
            flag=flag,
            type=_TYPES.get(setting.type, "str"),
            choices=tuple(str(choice) for choice in setting.choices),
            default=None if default is None or isinstance(default, Unknown) else str(default),
            negation=f"--no-{flag.removeprefix('--')}" if engine == "vllm" else None,
            group=setting.file or "",
        )


def _as_started(argument: Argument, flags: tuple[str, ...]) -> Argument:
    """With what the twin is started with for its default: another value than that is a change."""
    if argument.flag not in flags:
        return argument
    at = flags.index(argument.flag) + 1
    value = flags[at] if at < len(flags) and not flags[at].startswith("--") else "True"
    return msgspec.structs.replace(argument, default=value)


def _variables(engine: str, version: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Variables that a release reads as a switch or a choice, and their other values."""
    for name, setting in sorted(catalogue(engine).settings.items()):
        default = setting.default_at(version)
        if setting.env != name or isinstance(default, Unknown):
            continue
        values = ("0", "1") if setting.type == "bool" else tuple(map(str, setting.choices))
        usual = {"False": "0", "True": "1"}.get(str(default), str(default))
        if others := tuple(value for value in values if value != usual):
            yield name, others


def _absent(default: object) -> bool:
    return isinstance(default, Unknown) and "no such setting" in default.why


def known(engine: str, word: str) -> Setting | None:
    """The setting that a drawn flag or variable spells."""
    return catalogue(engine).find(word)

"""Changes that keep the meaning of a table: order, layout, names, units, places, neighbours."""

import json
import random
import re
from collections.abc import Callable
from pathlib import Path

from stepline.sources.quantities.cells import cell
from stepline.sources.quantities.quantity import parse
from tests.invariance.tables import Made, key_of, synonyms

Files = dict[str, bytes]
Rewrite = Callable[[Made, random.Random], Files | None]
"""The files of a folder; None where the change cannot be applied to this table."""


def csv(table: Made, delimiter: str = ",") -> str:
    """As a delimited text."""
    return "".join(delimiter.join(cells) + "\n" for cells in (table.names, *table.rows))


def plain(table: Made) -> Files:
    """The table as it is."""
    return {"table.csv": csv(table).encode()}


def _text(text: str, name: str = "table.csv") -> Files:
    return {name: text.encode()}


def rows_in_another_order(table: Made, rng: random.Random) -> Files:
    rows = list(table.rows)
    rng.shuffle(rows)
    return plain(table._replace(rows=tuple(rows)))


def columns_in_another_order(table: Made, rng: random.Random) -> Files:
    order = list(range(len(table.names)))
    rng.shuffle(order)
    pick = lambda cells: tuple(cells[at] for at in order)  # noqa: E731
    return plain(table._replace(names=pick(table.names), rows=tuple(map(pick, table.rows))))


def another_file_name(table: Made, rng: random.Random) -> Files:
    return _text(
        csv(table),
        rng.choice(("results-final (2).csv", "a/b/ERGEBNIS.CSV", "x", "data.txt", "run_7.log.csv")),
    )


def tabs(table: Made, rng: random.Random) -> Files:
    return _text(csv(table, "\t"), "table.tsv")


def semicolons(table: Made, rng: random.Random) -> Files:
    return _text(csv(table, ";"))


def markdown_of(table: Made) -> str:
    """As a Markdown table."""
    rule = "|" + "---|" * len(table.names)
    lines = ["| " + " | ".join(cells) + " |" for cells in (table.names, *table.rows)]
    return "\n".join([lines[0], rule, *lines[1:]]) + "\n"


def markdown(table: Made, rng: random.Random) -> Files:
    return _text(markdown_of(table), "table.md")


def aligned(table: Made, rng: random.Random) -> Files:
    widths = [
        max(len(cells[at]) for cells in (table.names, *table.rows)) + 3 for at in range(len(table.names))
    ]
    right = rng.random() < 0.5
    lines = []
    for cells in (table.names, *table.rows):
        pairs = zip(cells, widths, strict=True)
        lines.append(
            "".join(one.rjust(width) if right else one.ljust(width) for one, width in pairs).rstrip()
        )
    return _text("\n".join(lines) + "\n", "table.txt")


def _objects(table: Made) -> list[dict[str, object]]:
    def value(text: str) -> object:
        found = cell(text)
        return (
            text
            if found is None or found.unit
            else json.loads(text)
            if re.fullmatch(r"-?\d+(\.\d+)?", text)
            else text
        )

    return [
        {name: value(text) for name, text in zip(table.names, cells, strict=True)} for cells in table.rows
    ]


def json_list(table: Made, rng: random.Random) -> Files:
    return _text(json.dumps(_objects(table)), "table.json")


def json_nested(table: Made, rng: random.Random) -> Files:
    return _text(json.dumps({"meta": {"host": "h"}, "runs": {"measured": _objects(table)}}), "table.json")


def json_lines(table: Made, rng: random.Random) -> Files:
    lines = [json.dumps(one) for one in _objects(table)]
    return _text("\n".join(lines) + "\n", "table.jsonl")


def json_columns(table: Made, rng: random.Random) -> Files:
    objects = _objects(table)
    return _text(json.dumps({name: [one[name] for one in objects] for name in table.names}), "table.json")


def comments(table: Made, rng: random.Random) -> Files:
    line = rng.choice(("# measured on Tuesday", "// 3 runs, second kept", "# host: node-3, driver 595"))
    return _text(f"{line}\n{csv(table)}")


def titles(table: Made, rng: random.Random) -> Files:
    return _text(f"Results of the second try\n\n{csv(table)}\n")


def line_ends(table: Made, rng: random.Random) -> Files:
    return {"table.csv": csv(table).replace("\n", "\r\n").encode()}


def byte_order_mark(table: Made, rng: random.Random) -> Files:
    return {"table.csv": b"\xef\xbb\xbf" + csv(table).encode()}


def utf_16(table: Made, rng: random.Random) -> Files:
    return {"table.csv": csv(table).encode("utf-16")}


def decimal_commas(table: Made, rng: random.Random) -> Files | None:
    # One cell must show it: a comma before three digits may separate thousands.
    if not any(re.fullmatch(r"\d+\.\d\d", text) for cells in table.rows for text in cells):
        return None
    rows = tuple(tuple(re.sub(r"^(-?\d+)\.(\d+)$", r"\1,\2", text) for text in cells) for cells in table.rows)
    return _text(csv(table._replace(rows=rows), rng.choice((";", "\t"))))


def _with_units(table: Made, old: str, new: str, factor: float) -> Made | None:
    at = [
        index
        for index, name in enumerate(table.names)
        if parse(name).is_time and parse(name).unit == old and re.search(rf"(?<![a-z]){old}(?![a-z])", name)
    ]
    if not at:
        return None
    names = tuple(
        re.sub(rf"(?<![a-z]){old}(?![a-z])", new, name) if index in at else name
        for index, name in enumerate(table.names)
    )
    rows = tuple(
        tuple(f"{float(text) * factor:.13g}" if index in at else text for index, text in enumerate(cells))
        for cells in table.rows
    )
    return table._replace(names=names, rows=rows)


def seconds(table: Made, rng: random.Random) -> Files | None:
    changed = _with_units(table, "ms", "s", 1e-3)
    return None if changed is None else plain(changed)


def microseconds(table: Made, rng: random.Random) -> Files | None:
    changed = _with_units(table, "ms", "us", 1e3)
    return None if changed is None else plain(changed)


def units_in_cells(table: Made, rng: random.Random) -> Files | None:
    at = [index for index, name in enumerate(table.names) if parse(name).is_time and parse(name).unit == "ms"]
    if not at:
        return None
    rows = tuple(
        tuple(f"{text} ms" if index in at else text for index, text in enumerate(cells))
        for cells in table.rows
    )
    return plain(table._replace(rows=rows))


def about(table: Made, rng: random.Random) -> Files | None:
    measured = [
        index
        for index, name in enumerate(table.names)
        if parse(name).is_time or parse(name).what == "token_rate"
    ]
    if not measured:
        return None
    rows = tuple(
        tuple(f"~{text}" if index in measured else text for index, text in enumerate(cells))
        for cells in table.rows
    )
    return plain(table._replace(rows=rows))


def names_of_other_tools(table: Made, rng: random.Random) -> Files | None:
    names = []
    for name in table.names:
        quantity = parse(name)
        others = (
            synonyms().get(key_of(quantity), ())
            if quantity.what and not (quantity.arm or quantity.unknown)
            else ()
        )
        names.append(rng.choice(others) if others else name)
    if tuple(names) == table.names or len(set(names)) < len(names):
        return None
    return plain(table._replace(names=tuple(names)))


def another_spelling(table: Made, rng: random.Random) -> Files:
    style = rng.choice(
        (str.upper, str.title, lambda text: text.replace("_", " "), lambda text: text.replace("_", "-"))
    )
    return plain(
        table._replace(names=tuple(style(name) if parse(name).what else name for name in table.names))
    )


def a_file_beside(table: Made, rng: random.Random) -> Files:
    other = rng.choice(
        (
            ("README.md", b"# Notes\n\nHow we ran it: see the wiki, page 7.\n"),
            ("requirements.txt", b"numpy==2.1\npandas>=2\n"),
            ("plot.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0"),
            ("colours.csv", b"colour,mood\nred,angry\nblue,calm\n"),
            ("env.json", b'{"USER": "me", "SHELL": "/bin/zsh"}'),
        )
    )
    return {**plain(table), other[0]: other[1]}


def in_prose(table: Made, rng: random.Random) -> Files:
    before = "We ran the client three times against the same server, and this is what we see:\n\n"
    return _text(
        f"# Slow decode\n\n{before}{markdown_of(table)}\nAny idea why? Thanks, and sorry for the long text.\n",
        "issue.md",
    )


def fenced(table: Made, rng: random.Random) -> Files:
    return _text(
        f"Here is the output, pasted:\n\n```\n{csv(table)}```\n\nIt was quiet otherwise.\n", "issue.md"
    )


REWRITES: dict[str, Rewrite] = {
    rewrite.__name__.replace("_", " "): rewrite
    for rewrite in (
        *(
            rows_in_another_order,
            columns_in_another_order,
            another_file_name,
            tabs,
            semicolons,
            markdown,
            aligned,
        ),
        *(
            json_list,
            json_nested,
            json_lines,
            json_columns,
            comments,
            titles,
            line_ends,
            byte_order_mark,
            utf_16,
        ),
        *(
            decimal_commas,
            seconds,
            microseconds,
            units_in_cells,
            about,
            names_of_other_tools,
            another_spelling,
        ),
        *(a_file_beside, in_prose, fenced),
    )
}


def write(files: Files, folder: Path) -> Path:
    """Put files into a folder."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder

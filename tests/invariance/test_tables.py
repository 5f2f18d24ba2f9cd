"""A fixed seed gates; a second, random one is printed and reports without failing the run."""

import os
import random
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.invariance.answers import answer
from tests.invariance.rewrites import REWRITES, plain, write
from tests.invariance.tables import Made, read_csv, sample

ROOT = Path(__file__).parent.parent.parent
FIXED_SEED = 20261201
EACH = int(os.environ.get("STEPLINE_INVARIANCE_EACH", "24"))
"""Applied changes of each kind; 500 and more for the table in docs/accuracy.md."""


def changed(table: Made, name: str, rng: random.Random, folder: Path) -> str | None:
    """How a change that keeps the meaning changed the answer; None where it did not, "" where it does not apply."""
    files = REWRITES[name](table, rng)
    if files is None:
        return ""
    before = answer(write(plain(table), folder / "before"))
    after = answer(write(files, folder / "after"))
    return None if before == after else f"{name} of {table}\n  before {before}\n  after  {after}"


def applied(name: str, seed: int, folder: Path, each: int) -> Iterator[str | None]:
    rng = random.Random(f"{seed} {name}")  # noqa: S311
    count = 0
    for index in range(20 * each):
        said = changed(sample(rng), name, rng, folder / str(index))
        if said != "":
            count += 1
            yield said
        if count >= each:
            return


@pytest.mark.parametrize("name", REWRITES)
def test_a_change_that_keeps_the_meaning_keeps_the_answer(name: str, tmp_path: Path) -> None:
    answers = list(applied(name, FIXED_SEED, tmp_path, EACH))
    assert len(answers) >= EACH / 2
    assert [said for said in answers if said] == []


def test_a_random_seed_reports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seed = random.SystemRandom().randrange(10**6)
    wrong = Counter(name for name in REWRITES for said in applied(name, seed, tmp_path / name, 2) if said)
    with capsys.disabled():
        print(f"\ninvariance, random seed {seed}: {sum(wrong.values())} changed answers {dict(wrong) or ''}")


def test_tables_that_say_nothing_are_at_most_a_quarter(tmp_path: Path) -> None:
    rng = random.Random(FIXED_SEED)  # noqa: S311
    answers = [answer(write(plain(sample(rng)), tmp_path / str(index))) for index in range(80)]
    assert not any(said == ("unreadable",) for said in answers)
    assert sum(1 for said in answers if not any(said[1])) <= 20


def real_tables() -> list[Path]:
    roots = [
        ROOT / "tests/data",
        ROOT.parent / "shared/cases",
        ROOT.parent / "shared/field",
        ROOT.parent / "shared/founding",
    ]
    return [
        path
        for root in roots
        if root.is_dir()
        for path in sorted(root.rglob("*"))
        if path.suffix in (".csv", ".tsv")
    ]


@pytest.mark.parametrize("path", real_tables()[::3], ids=lambda path: "/".join(path.parts[-3:]))
def test_tables_that_lie_somewhere(path: Path, tmp_path: Path) -> None:
    table = read_csv(path.read_text("utf-8", "replace"), path.name)
    if table is None:
        pytest.skip("cells that other layouts use as signs")
    rng = random.Random(f"{FIXED_SEED} {path.name}")  # noqa: S311
    names = rng.sample(sorted(REWRITES), 6)
    said = [changed(table, name, rng, tmp_path / name) for name in names]
    assert [one for one in said if one] == []


def in_thousandths(table: Made) -> Made | None:
    """The same table with its times a thousandth of what their names say: another meaning."""
    at = [index for index, name in enumerate(table.names) if name.endswith("_ms")]
    rows = tuple(
        tuple(f"{float(cell) / 1000:.6f}" if index in at else cell for index, cell in enumerate(cells))
        for cells in table.rows
    )
    return table._replace(rows=rows) if at else None


def test_times_of_another_unit_than_said_are_read_by_arithmetic_or_not_at_all(tmp_path: Path) -> None:
    rng = random.Random(FIXED_SEED)  # noqa: S311
    seen = 0
    for index in range(120):
        table = sample(rng)
        other = in_thousandths(table)
        if other is None or table.kind not in ("sweep", "arms in rows"):
            continue
        seen += 1
        before = answer(write(plain(table), tmp_path / f"{index}a"))
        after = answer(write(plain(other), tmp_path / f"{index}b"))
        # Rates and streams tell that "ms" must be seconds; then the numbers are the same.
        assert after == before, table
    assert seen > 10


def test_another_value_is_another_answer(tmp_path: Path) -> None:
    """Numbers that mean something else must not be read as before."""
    rng = random.Random(FIXED_SEED)  # noqa: S311
    for index in range(60):
        table = sample(rng)
        column = next(
            at for at, name in enumerate(table.names) if table.rows[0][at].replace(".", "").isdigit() and at
        )
        rows = tuple(
            tuple(f"{float(cell) * 3 + 1:g}" if at == column else cell for at, cell in enumerate(cells))
            for cells in table.rows
        )
        before = answer(write(plain(table), tmp_path / f"{index}a"))
        assert before != answer(write(plain(table._replace(rows=rows)), tmp_path / f"{index}b")), table


def test_shared_tables_are_there_or_said_to_be_missing() -> None:
    if not (ROOT.parent / "shared/cases").is_dir():
        warnings.warn(
            "shared/cases is absent: only generated tables and tests/data were changed", stacklevel=1
        )

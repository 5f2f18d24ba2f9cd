"""Every argument is judged or set aside with a reason, in words that the rest of stepline knows."""

import subprocess
import sys
from pathlib import Path

import pytest

from stepline.facts.settings import COMMON, ENGINES, Judgement, catalogue
from stepline.facts.settings.records import CONDITIONS, MECHANISMS, OPPOSITE
from stepline.findings.registry import RULES

ROOT = Path(__file__).parents[4]
FOLDER = ROOT / "src" / "stepline" / "facts" / "settings"
ALL = (*ENGINES, COMMON)
COMPLETE = {"sglang": ("0.5.16", "0.5.23"), "vllm": ("0.24.0", "0.32.0")}
PLANNED = {"H307", "H308"}
"""Causes that the design names and that have no rule yet."""


@pytest.mark.parametrize("engine", COMPLETE)
def test_every_argument_is_judged_or_set_aside_with_a_reason(engine):
    known = catalogue(engine)
    assert set(COMPLETE[engine]) <= set(known.releases)
    arguments = {name for name, setting in known.settings.items() if setting.env != name and "." not in name}
    assert arguments - set(known.judgements) - set(known.set_aside) == set()
    assert len(arguments) > 300
    assert all(len(reason.split()) >= 4 for reason in known.set_aside.values())


@pytest.mark.parametrize("engine", ALL)
def test_judgements_are_of_known_settings_and_in_known_words(engine):
    known = catalogue(engine)
    causes = {rule.code for rule in RULES} | PLANNED
    assert known.judgements
    assert set(known.judgements) <= set(known.settings)
    assert not set(known.judgements) & set(known.set_aside)
    for judgement in known.judgements.values():
        assert judgement.acts_on in MECHANISMS, judgement.name
        assert judgement.relieves, judgement.name
        assert set(judgement.relieves) <= set(OPPOSITE), judgement.name
        named = {code for codes in judgement.relieves.values() for code in codes}
        assert named, judgement.name
        assert named <= causes | {"C503"}, (judgement.name, named - causes)
        assert judgement.harmless, judgement.name
        assert judgement.cost, judgement.name
        assert _condition_is_known(engine, judgement.when), judgement.name
        assert judgement.source or known.source


def _condition_is_known(engine: str, when: str | None) -> bool:
    if when is None or when in CONDITIONS:
        return True
    return when.startswith("setting:") and when.removeprefix("setting:") in catalogue(engine).settings


def test_what_brings_a_cause_about_is_the_way_back():
    judgement = Judgement(
        name="x",
        acts_on="graphs",
        relieves={"off": ("H302",), "raise": ("S201",)},
        harmless="-",
        cost="restart",
    )
    assert judgement.brings == {"on": ("H302",), "lower": ("S201",)}
    assert judgement.direction_for("S201") == "raise"
    assert judgement.direction_for("K401") is None


def test_shipped_data_stays_small():
    assert sum(file.stat().st_size for file in FOLDER.glob("*.jsonl")) < 1_000_000


NEW_RELEASE = """
import dataclasses
@dataclasses.dataclass
class ServerArgs:
    max_running_requests: A[Optional[int], "The maximum number of running requests."] = None
    {new}: A[int, "Something that no catalogue knows."] = 3
"""


@pytest.mark.parametrize(("new", "code"), [("tp_size", 0), ("quantum_decode_width", 1)])
def test_a_release_with_an_unknown_argument_fails_the_check_and_names_it(tmp_path, new, code):
    srt = tmp_path / "sglang-9.9.9" / "sglang" / "srt"
    srt.mkdir(parents=True)
    (srt / "server_args.py").write_text(NEW_RELEASE.format(new=new))
    ran = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "settings.py"), "--check", str(tmp_path / "sglang-9.9.9")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == code, ran.stderr
    assert ("quantum_decode_width" in ran.stdout) == bool(code)


def test_a_package_of_no_engine_is_refused_in_one_sentence(tmp_path):
    (tmp_path / "notanengine-1.0").mkdir()
    ran = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "settings.py"), "--check", str(tmp_path / "notanengine-1.0")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1
    assert "no engine is called notanengine" in ran.stderr

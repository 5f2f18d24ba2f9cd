"""The one list of engines: whole, told apart, and in step with what the lab simulates."""

import importlib
import pkgutil
import subprocess
import sys

import pytest

from stepline.lab.sim.start import ENGINES as SIMULATED
from stepline.sources import engines
from stepline.sources.engines import ENGINES


def test_every_engine_of_the_folder_is_in_the_list_once():
    modules = [f"{engines.__name__}.{found.name}" for found in pkgutil.iter_modules(engines.__path__)]
    records = [importlib.import_module(name).ENGINE for name in modules]
    assert sorted(ENGINES, key=lambda engine: engine.name) == sorted(records, key=lambda one: one.name)
    assert len({engine.name for engine in ENGINES}) == len(ENGINES)


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)
def test_an_engine_has_something_to_read_and_its_name_is_the_one_in_evidence(engine):
    assert engine.log or engine.metrics or engine.documents or engine.find
    if engine.log is not None:
        assert engine.log("server.log").book.engine == engine.name


def test_no_metric_belongs_to_two_engines():
    prefixes = [engine.metrics.prefix for engine in ENGINES if engine.metrics]
    assert [a for a in prefixes for b in prefixes if a is not b and a.startswith(b)] == []


def test_what_the_lab_simulates_can_be_read_and_driven_live():
    known = {engine.name: engine for engine in ENGINES}
    for name in SIMULATED:
        assert known[name].log, name
        assert known[name].metrics, name
        assert known[name].find, name


def test_reading_files_imports_nothing_that_speaks_http():
    code = "import sys, stepline.sources.read as _; sys.exit('stepline.sources.http' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

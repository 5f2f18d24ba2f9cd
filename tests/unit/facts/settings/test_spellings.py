"""Every spelling leads to its setting, and a line made of all flags is read back."""

import pytest

from stepline.facts.settings import ENGINES, Setting, catalogue
from stepline.sources.settings.flags import read_flags

VALUES = {"int": "7", "float": "0.5", "list": "3", "json": '{"a": 1}', "str": "word", "choice": "word"}
READ = {"int": 7, "float": 0.5, "list": [3], "json": {"a": 1}, "str": "word", "choice": "word", "bool": True}


def flags_of(engine: str) -> list[tuple[Setting, str]]:
    """Every flag that no other setting of a newer release has taken over."""
    known = catalogue(engine)
    pairs = []
    for setting in known.settings.values():
        for flag in setting.flags if setting.flags is not None else setting.spelled:
            bare = flag.partition("=")[0]
            if bare.startswith("--") and known.flags[bare.replace("_", "-")][0] == setting.name:
                pairs.append((setting, flag))
    return pairs


@pytest.mark.parametrize("engine", ENGINES)
def test_names_flags_and_variables_find_their_setting(engine):
    known = catalogue(engine)
    for name, setting in known.settings.items():
        assert known.find(name) is setting
        if setting.env:
            assert known.find(setting.env).env == setting.env
    for setting, flag in flags_of(engine):
        assert known.find(flag.partition("=")[0]) is setting, flag


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("joined", [True, False])
def test_every_flag_is_read_back_as_its_setting(engine, joined):
    pairs = flags_of(engine)
    assert len(pairs) > 10
    for setting, flag in pairs:
        bare, stores, stored = flag.partition("=")
        kind = setting.type if setting.type in READ else "str"
        bare_alone = bool(stores) or kind == "bool"
        with_value = [f"{bare}={VALUES.get(kind)}"] if joined else [bare, VALUES.get(kind, "")]
        words = [bare] if bare_alone else with_value
        read = read_flags(engine, words)
        assert read.unknown == (), flag
        given = {each.name: each.value for each in read.given}
        if stores:
            assert str(given[setting.name]) == stored
        elif "key" not in setting.name and "token" not in setting.name and "password" not in setting.name:
            assert given[setting.name] == READ[kind], flag


def test_underscores_dashes_and_abbreviations():
    assert read_flags("sglang", ["--tp", "4"]).given[0].name == "tp_size"
    assert read_flags("vllm", ["--max_num_seqs=3"]).given[0].name == "max_num_seqs"
    assert read_flags("vllm", ["--max-num-s", "3"]).unknown == ("--max-num-s",)


def test_an_unknown_engine_has_no_catalogue():
    with pytest.raises(KeyError):
        catalogue("abacus")

"""A server that misbehaves is named and never waited for beyond the budget."""

import json
import time

import pytest

from stepline.cli.main import main
from tests.unit.live import hostile

BUDGET_S = 8


def diagnosed(server, tmp_path, *more, budget_s=BUDGET_S):
    tmp_path.mkdir(exist_ok=True)
    port = server.server_address[1]
    answer = tmp_path / "answer.json"
    began = time.monotonic()
    code = main(
        [
            *("diagnose", f"http://127.0.0.1:{port}", "--budget", f"{budget_s}s", "--json", str(answer)),
            *("--save", str(tmp_path / "capture"), "--concurrency", "1,2", "--load", *more),
        ]
    )
    assert time.monotonic() - began < budget_s + 30
    return code, json.loads(answer.read_text())["runs"][0] if answer.exists() else None


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (hostile.failing, "500"),
        (hostile.garbling, "garbled: JSON is malformed"),
        (hostile.closing, "closed after 3 tokens"),
        (hostile.lying, "miscounted: 400 tokens"),
    ],
)
def test_it_is_counted_and_named(answer, says, tmp_path, capsys):
    with hostile.serving(answer) as server:
        code, said = diagnosed(server, tmp_path)
    blamed = {finding["code"] for finding in said["findings"]}
    assert (code, blamed) in ((3, set()), (0, {"L101"})), (
        "nothing was measured, but for a busy machine's own client"
    )
    told = capsys.readouterr()
    assert says in told.err
    assert any(says in line["text"] for line in said["health"])
    assert "\x1b" not in told.out + told.err, "a model's name moves no cursor"


def test_a_server_that_compiles_under_load_is_waited_for(tmp_path, capsys):
    with hostile.serving(hostile.compiling(10.0)) as server:
        code, said = diagnosed(server, tmp_path, budget_s=60)
    assert code == 0
    assert "not a token came" in capsys.readouterr().err
    assert {level["concurrency"] for level in said["levels"] if level["tok_s"]} == {1, 2}


def test_a_hang_ends_with_the_budget(tmp_path, capsys):
    with hostile.serving(hostile.hanging) as server:
        code, _ = diagnosed(server, tmp_path)
    assert code == 3
    assert "Traceback" not in capsys.readouterr().err


def test_a_key_is_sent_and_kept_nowhere(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("STEPLINE_API_KEY", "sk-0123456789abcdef")
    with hostile.serving(hostile.failing) as server:
        diagnosed(server, tmp_path, "--header", "X-Team: secret-team-token")
        assert server.asked[0]["Authorization"] == "Bearer sk-0123456789abcdef"
        assert server.asked[0]["X-Team"] == "secret-team-token"
    with hostile.serving(hostile.echoing) as server:
        diagnosed(server, tmp_path / "echoed")
    told = capsys.readouterr()
    assert "no such key: [redacted]" in told.err
    kept = told.out.encode() + told.err.encode()
    kept += b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"sk-0123456789abcdef" not in kept
    assert b"secret-team-token" not in kept


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["http://127.0.0.1:9"], "no answer"),
        (["http://"], "the URL needs the form"),
        (["http://me:pw@localhost:1"], "password"),
        (["localhost:30000"], "give http://localhost:30000"),
        (["[::1]:30000"], "give http://[::1]:30000"),
        (["HTTP://127.0.0.1:9"], "no answer"),
        (["http://127.0.0.1:9/späti"], "no answer"),
        (["http://localhost:1", "--concurrency", "²"], "--concurrency ²"),
        (["http://localhost:1", "--header", "Authorization: Bearer sk-0…"], "plain ASCII"),
        (["http://localhost:1", "--budget", "soon"], "--budget soon"),
        (["http://localhost:1", "--concurrency", "0"], "--concurrency 0"),
        (["http://localhost:1", "--header", "nonsense"], "'Name: value'"),
        (["http://localhost:1", "capture/"], "one server's URL alone"),
    ],
)
def test_what_cannot_be_right_is_one_sentence(arguments, says, capsys):
    assert main(["diagnose", *arguments]) == 2
    told = capsys.readouterr().err
    assert says in told
    assert told.count("\n") == 1
    assert "pw" not in told.replace("password", "")


def test_a_server_that_cannot_tell_whether_others_use_it_is_not_loaded(tmp_path, capsys):
    with hostile.serving(hostile.answering) as server:
        assert main(["diagnose", f"http://127.0.0.1:{server.server_address[1]}"]) == 3
        assert server.asked == []
    assert "--load drives it all the same" in capsys.readouterr().err


def test_answers_that_the_server_cannot_give_are_refused_before_any_load(capsys):
    models = {"data": [{"id": "m", "owned_by": "vllm", "max_model_len": 2048}]}
    with hostile.serving(hostile.answering, {"/v1/models": models}) as server:
        url = f"http://127.0.0.1:{server.server_address[1]}"
        assert main(["diagnose", url, "--load", "--output-tokens", "4000"]) == 2
        assert server.asked == []
    assert "give 1872 at most" in capsys.readouterr().err


def test_a_web_server_is_no_llm_server(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(hostile, "MODELS", b"<html>")
    with hostile.serving(hostile.failing) as server:
        assert main(["diagnose", f"http://127.0.0.1:{server.server_address[1]}"]) == 2
    assert "no LLM server" in capsys.readouterr().err

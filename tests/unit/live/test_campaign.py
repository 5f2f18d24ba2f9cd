"""A campaign on a simulated engine: sealed before it is measured, resumable, repeatable, and what fails is an entry."""

import socket
import sys
from pathlib import Path

import pytest

from stepline.cli.main import main
from stepline.errors import UsageError
from stepline.lab.blind.arguments import Argument
from stepline.lab.blind.change import Server
from stepline.lab.blind.draw import Plan, draw_case
from stepline.lab.blind.seal import entries
from stepline.lab.real import engine
from stepline.tasks.campaign import DIAGNOSIS, FILE, run_campaign, verify_campaign
from stepline.tasks.campaign_request import CampaignRequest
from tests.unit.lab import real

PLAN = Plan(
    engine="sglang",
    version="0",
    gpu=None,
    models={"tiny": {"vocab_size": 100}},
    twin=Server(
        model="tiny", flags=("--fault", "healthy"), concurrency=(12,), input_tokens=64, output_tokens=32
    ),
    arguments=(Argument(flag="--fault", type="str", choices=("S201:3", "healthy"), default="healthy"),),
)


@pytest.fixture(autouse=True)
def simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Path(real.__file__).with_name("simulated_engine.py")
    monkeypatch.setitem(engine.LAUNCH, "sglang", (sys.executable, str(script)))
    monkeypatch.setattr("stepline.lab.blind.draw.KINDS", {"argument": 1})
    monkeypatch.setattr("stepline.lab.blind.draw.TWO_OF", 1000)


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def request(folder: Path, **changes: object) -> CampaignRequest:
    settings: dict[str, object] = {"folder": folder, "plan": PLAN, "seed": 3, "cases": 1, "port": free_port()}
    return CampaignRequest(**(settings | {"level_s": 4.0, "budget_s": 20.0, "ready_s": 30.0} | changes))  # type: ignore[arg-type]


def test_an_answer_is_sealed_before_its_truth_and_a_run_goes_on_where_it_was(tmp_path: Path) -> None:
    folder = tmp_path / "campaign"
    (name,) = run_campaign(request(folder))
    kinds = [entry.kind for entry in entries(folder / FILE)]
    assert kinds == ["campaign", "drawn", "answer", "truth"]
    truth = entries(folder / FILE)[-1].body
    assert truth["cost"] > 0.3  # a cap of 4 under 12 streams
    assert truth["low"] <= truth["cost"] <= truth["high"]
    assert truth["changes"] == [{"kind": "argument", "name": "--fault", "value": "S201:3"}]
    said_of_it = [finding["code"] for finding in entries(folder / FILE)[2].body["findings"]]
    assert "S201" in said_of_it  # behind L101 where this machine itself is too busy
    assert verify_campaign(folder) == []
    assert run_campaign(request(folder)) == []
    with pytest.raises(UsageError, match="another seed"):
        run_campaign(request(folder, seed=4))
    said = folder / name / DIAGNOSIS
    said.write_text(said.read_text().replace("S201", "S202"))
    assert "not the one that was sealed" in verify_campaign(folder)[0]
    assert main(["lab", "campaign", "verify", str(folder)]) == 1


def test_what_does_not_start_is_an_entry_with_the_reason(tmp_path: Path) -> None:
    refusing = PLAN.__class__(
        **{field: getattr(PLAN, field) for field in PLAN.__struct_fields__}
        | {"arguments": (Argument(flag="--refuse", type="bool", default="False"),)}
    )
    folder = tmp_path / "campaign"
    run_campaign(request(folder, plan=refusing))
    last = entries(folder / FILE)[-1]
    assert (last.kind, last.case) == ("failed", draw_case(refusing, 3, 0).name)
    assert "before it was ready" in last.body["why"]
    assert str(tmp_path) not in str(last.body)


def test_the_cases_of_a_seed_are_shown_without_running_them(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert (
        main(["lab", "campaign", "draw", str(tmp_path), "--engine", "vllm", "--seed", "9", "--cases", "3"])
        == 0
    )
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["case-9-000", "case-9-001", "case-9-002"]
    assert not list(tmp_path.iterdir())


def test_a_folder_without_a_campaign_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no campaign\.jsonl"):
        verify_campaign(tmp_path)

"""A package of anybody's own, installed beside magrounding from wheels, trains by the same command as ours."""

import json
from pathlib import Path

import pytest

from tests.full import in_full
from tests.wheels import NEEDED, ROOT, build_wheels, install, run

EXAMPLE = ROOT / "examples" / "my_game"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), NEEDED]


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    """Name → wheel, of the package and of the example."""
    return build_wheels(tmp_path_factory.mktemp("wheels"), ROOT, EXAMPLE)


@pytest.fixture(scope="module")
def installed(wheels, tmp_path_factory):
    """The programs' folder of a fresh environment with both wheels."""
    return install(tmp_path_factory.mktemp("venv"), *wheels.values())


@pytest.fixture(scope="module", params=in_full(["demo", "reinforce"], ["demo"]))
def trained(request, installed, tmp_path_factory):
    """The run folder of a short training, made from a folder that holds nothing."""
    folder = tmp_path_factory.mktemp("elsewhere")
    options = ("--games", "100", "--budget", "0.2", "--network", "width=48", "--out", "run")
    run(installed / "magrounding", "train", "--env", "my_game", "--preset", request.param, *options, cwd=folder)
    return folder / "run"


def test_what_is_imported_is_what_the_wheels_hold(installed, tmp_path):
    code = "import magrounding, my_game; print(magrounding.__file__, my_game.__file__)"
    found = run(installed / "python", "-c", code, cwd=tmp_path).split()
    assert all(Path(path).is_relative_to(installed.parent) for path in found), found


def test_it_learns_to_read(trained):
    report = (trained / "report.md").read_text(encoding="utf-8")
    assert "my_game" in report
    lines = [json.loads(line) for line in (trained / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    ends = [
        line for line in lines if line["kind"] == "evaluation" and line["when"] == "after" and line["set"] == "eval"
    ]
    true = max(line["win_rate"] for line in ends if line["manual"] == "true")
    wrong = max(line["win_rate"] for line in ends if line["manual"] != "true")
    assert true >= 0.9, "chance is 4 ** -2"
    assert wrong < true / 2


@pytest.mark.parametrize("trained", ["demo"], indirect=True)
def test_what_was_trained_can_be_loaded_and_evaluated(trained, installed):
    code = "import magrounding as mg; policies = mg.load_team('run').policies; print(policies[0].words.embedding_dim)"
    names = "print(*(type(policy).__name__ for policy in policies))"
    found = run(installed / "python", "-c", f"{code}; {names}", cwd=trained.parent).split()
    assert found == ["48", "Healer", "Healer"], "--network, not the default 32"
    asked = ("--run", "run", "--episodes", "50", "--play", "greedy")
    assert "eval" in run(installed / "magrounding", "evaluate", *asked, cwd=trained.parent)


def test_bad_options_of_the_game_are_one_sentence(installed, tmp_path):
    said = run(installed / "magrounding", "train", "--env", "my_game", "--preset", "silg", cwd=tmp_path, succeeds=False)
    assert "silg" in said
    assert "Traceback" not in said
    assert not list(tmp_path.iterdir())

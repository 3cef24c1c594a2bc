"""Publishing keeps one stage of one seed, in half precision, with what it reached; nonsense is one sentence."""

import re

import pytest
import torch

from magrounding import pretrained
from magrounding.cli import publish
from magrounding.cli.command import CommandLine
from magrounding.envs.make import Game
from magrounding.errors import ConfigurationError
from magrounding.experiment.config import read_config
from magrounding.experiment.tables import percent
from magrounding.run_folder import RunFolder
from magrounding.storage import read_json
from magrounding.teams.loading import load_team
from tests.experiment.tiny_runs import tiny_run


@pytest.fixture(autouse=True)
def no_teams_of_extensions(monkeypatch):
    monkeypatch.setattr(pretrained, "TEAMS", {})


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    path = tiny_run(tmp_path_factory.mktemp("runs") / "run", "s1", "s2")
    run = RunFolder(path)
    run.write_config({**run.config(), "command": f"there --out {path} initial={path}/old"})
    return path


def run(*arguments):
    return CommandLine("magrounding publish", tuple(map(str, arguments))).run(publish)


@pytest.mark.parametrize(("chosen", "stage"), [([], "s2"), (["--stage", "s1"], "s1")])
def test_what_is_published_loads_and_says_what_it_reached(finished, monkeypatch, tmp_path, capsys, chosen, stage):
    assert run("--run", finished, "--name", "tiny", "--seed", 1, "--to", tmp_path, *chosen) == 0
    said = capsys.readouterr().out
    assert said == f"{tmp_path / 'tiny'}: load it with load_team({str(tmp_path / 'tiny')!r})\n"
    assert load_team(str(tmp_path / "tiny")).num_agents == 2
    assert (tmp_path / "tiny" / "README.md").is_file(), "it goes to others"
    monkeypatch.setattr(pretrained, "__file__", str(tmp_path / "__init__.py"))
    assert pretrained.pretrained_names() == ("tiny",)
    team, original = load_team("pretrained:tiny"), load_team(finished, 1, stage)
    for there, here in zip(team.policies, original.policies, strict=True):
        for name, tensor in here.state_dict().items():
            torch.testing.assert_close(there.state_dict()[name], tensor.half().float(), rtol=0, atol=0)
    about = read_json(tmp_path / "tiny" / pretrained.ABOUT_FILE)
    assert (about["seed"], about["learnt_by"], about["games"]) == (1, "reinforcement alone", 8)
    assert set(about["win_rates"]) >= {"eval, greedy", "eval, sampled"}
    assert about["environment_steps"] == {"s1": 60, "s2": 120}[stage]
    assert about["command"] == "there --out run initial=old"
    assert read_config(tmp_path / "tiny").stages[-1] == stage


@pytest.fixture(scope="module")
def folder(finished, tmp_path_factory):
    """A team that goes to others."""
    there = tmp_path_factory.mktemp("teams")
    assert run("--run", finished, "--name", "tiny", "--to", there, "--license", "mit") == 0
    return there / "tiny"


def test_the_model_card_has_what_hubs_read(folder):
    yaml = pytest.importorskip("yaml", reason="PyYAML comes with pre-commit of the extra `dev`")
    before, metadata, _ = (folder / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    assert before == ""
    content, about = yaml.safe_load(metadata), read_json(folder / pretrained.ABOUT_FILE)
    assert (content["library_name"], content["license"]) == ("magrounding", "mit")
    assert {"reinforcement-learning", "multi-agent", "ma_rtfm", "relread"} <= set(content["tags"])
    (model,) = content["model-index"]
    assert model["name"] == "tiny"
    assert [each["metrics"][0]["value"] for each in model["results"]] == list(about["win_rates"].values())
    assert {each["dataset"]["type"] for each in model["results"]} == {"ma_rtfm"}


def test_a_hub_takes_the_model_card(folder):
    hub = pytest.importorskip("huggingface_hub", reason="the extra `hub` is absent: huggingface_hub")
    results = hub.ModelCard.load(folder / "README.md").data.eval_results
    assert len(results) == len(read_json(folder / pretrained.ABOUT_FILE)["win_rates"])


def test_the_model_card_shows_results_with_intervals_a_game_and_how_to_load_it(folder, monkeypatch):
    text, about = (folder / "README.md").read_text(encoding="utf-8"), read_json(folder / pretrained.ABOUT_FILE)
    assert (folder / "game.gif").read_bytes().startswith(b"GIF8")
    assert "![A game of the team](game.gif)" in text
    for name, (low, high) in about["intervals"].items():
        games, play = name.rsplit(", ", 1)
        won = about["win_rates"][name]
        assert low <= won <= high
        assert f"| {games} | {play} | {percent(won)} | [{percent(low)}, {percent(high)}] |" in text
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    monkeypatch.chdir(folder.parent)
    played = {}
    exec(compile(code, "README.md", "exec"), played)
    assert played["env"].agents == []


def test_a_world_without_pictures_has_a_card_without(finished, monkeypatch, tmp_path, capsys):
    def refuse(*arguments, **options):
        raise ConfigurationError("no pictures here")

    monkeypatch.setattr(Game, "make", refuse)
    assert run("--run", finished, "--name", "tiny", "--to", tmp_path) == 0
    assert "the model card shows no game: no pictures here" in capsys.readouterr().out
    assert "![" not in (tmp_path / "tiny" / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "arguments",
    [["--private"], ["--hub", "tiny"], ["--seed", 7], ["--stage", "s5"], ["--name", "taken"]],
)
def test_nonsense_is_refused(finished, tmp_path, arguments):
    (tmp_path / "taken").mkdir()
    assert run("--run", finished, "--name", "tiny", "--to", tmp_path, *arguments) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_outside_a_checkout_teams_go_to_a_folder_of_the_users_and_are_found_there(
    finished, monkeypatch, tmp_path, capsys
):
    package = tmp_path / "site-packages" / "magrounding" / "pretrained"
    monkeypatch.setattr(pretrained, "__file__", str(package / "__init__.py"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert run("--run", finished, "--name", "tiny", "--seed", 1) == 0
    assert "load_team('pretrained:tiny')" in capsys.readouterr().out
    assert pretrained.find_run("pretrained:tiny") == tmp_path / "data" / "magrounding" / "pretrained" / "tiny"
    assert load_team("pretrained:tiny").num_agents == 2
    assert not (tmp_path / "data" / "magrounding" / "pretrained" / "tiny" / "README.md").exists(), "it stays here"
    assert not package.exists()
    assert run("--run", finished, "--name", "tiny") == 2
    monkeypatch.setenv("XDG_DATA_HOME", "not/absolute")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert pretrained.own_folder() == tmp_path / "home" / ".local" / "share" / "magrounding" / "pretrained"


@pytest.mark.parametrize("last", ["save_weights", "write_json"])
def test_what_was_killed_half_way_is_published_again(finished, monkeypatch, tmp_path, last):
    class Killed(BaseException):
        pass

    def die(*arguments, **options):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(publish, last, die)
        patch.setattr("shutil.rmtree", lambda *arguments, **options: None)  # what is killed tidies nothing
        with pytest.raises(Killed):
            run("--run", finished, "--name", "tiny", "--to", tmp_path)
    monkeypatch.setattr(pretrained, "__file__", str(tmp_path / "__init__.py"))
    assert not (tmp_path / "tiny").exists()
    assert pretrained.pretrained_names() == ()
    assert run("--run", finished, "--name", "tiny", "--to", tmp_path) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["tiny"]
    assert load_team("pretrained:tiny").num_agents == 2

"""What cannot work in any stage of a run is told before anything is written or measured."""

from dataclasses import replace

import pytest

from magrounding.cli import bench, evaluate, record
from magrounding.cli.command import CommandLine
from magrounding.cli.game_arguments import EvaluationArguments
from magrounding.errors import CheckpointError, ConfigurationError, MissingExtra
from magrounding.experiment.config import make_config
from magrounding.experiment.curriculum import run_curriculum
from magrounding.extensions.lge.cli import pieces
from magrounding.extensions.people.cli import play
from tests.experiment.tiny_runs import tiny_settings


def test_a_simulator_that_is_not_installed_leaves_no_folder(tmp_path, monkeypatch):
    settings = make_config("babyai", preset="quick")

    def missing(*_):
        raise MissingExtra("BabyAI", "babyai")

    monkeypatch.setattr("magrounding.single.babyai.options.BabyAI.make_env", missing)
    for _ in range(2):
        with pytest.raises(MissingExtra):
            run_curriculum(settings, tmp_path / "run")
    assert not list(tmp_path.iterdir())


def test_every_stage_is_asked_for_its_expert(tmp_path):
    settings = make_config("nethack", preset="quick", stages=("silg", "score"))
    with pytest.raises(ConfigurationError):
        run_curriculum(settings, tmp_path / "run")
    assert not list(tmp_path.iterdir())


def test_every_stage_has_a_measure_of_its_own():
    settings = make_config("nethack", preset="quick", stages=("silg", "score"))
    assert [settings.resolve().stages[stage].measure for stage in settings.stages] == ["win_rate", "score"]
    assert settings.resolve().stages["score"].windowed == "window_score"
    other_way = replace(settings, stages=("score", "silg"))
    assert [stage.measure for stage in other_way.resolve().stages.values()] == ["score", "win_rate"]


@pytest.mark.parametrize("learner", ["choiceread", "panoread"])
def test_a_network_that_the_world_refuses_is_refused_before_it_is_measured(monkeypatch, capsys, learner):
    def measure(*_, **__):
        raise AssertionError("the world is measured")

    for name in ("creation_cost", "vector_rates", "single_speed", "get_context"):
        monkeypatch.setattr(bench, name, measure)
    line = ("--env", "messenger", "--learner", learner, "--preset", "quick", "--seconds", "0.1")
    assert CommandLine("magrounding bench", line).run(bench) == 2
    assert capsys.readouterr().err.startswith(f"error: {learner} ")


@pytest.mark.parametrize(
    ("command", "plays", "line"),
    [
        (record, "_recorded", ("--env", "ma_rtfm", "--stage", "s1")),
        (pieces, "texts_shown", ("--env", "ma_rtfm")),
        (play, "Session", ("--env", "ma_rtfm", "--stage", "s1", "--players", "random")),
    ],
)
def test_a_file_whose_name_is_too_long_costs_no_game(tmp_path, monkeypatch, capsys, command, plays, line):
    monkeypatch.setattr(command, plays, lambda *_: pytest.fail("games are played"))
    line = *line, "--out", str(tmp_path / ("n" * 245))
    assert CommandLine(f"magrounding {command.__name__}", line).run(command) == 2
    told = capsys.readouterr().err
    assert ("name" in told, told.count("\n")) == (True, 1)
    assert not list(tmp_path.iterdir())


def test_an_evaluation_that_could_not_be_written_is_not_played(tmp_path, monkeypatch, capsys):
    (tmp_path / "file").write_text("mine")
    monkeypatch.setattr(evaluate, "evaluate_runs", lambda *_: pytest.fail("games are played"))
    line = ("--pretrained", "any", "--out", str(tmp_path / "file" / "out"))
    assert CommandLine("magrounding evaluate", line).run(evaluate) == 2


@pytest.mark.parametrize(("env", "limits"), [("messenger", {"s1": 4, "s2": 64, "s3": 128}), ("ma_rtfm", {"s1": 80})])
def test_games_have_the_limit_of_their_world_where_nobody_names_one(env, limits):
    for stage, limit in limits.items():
        assert EvaluationArguments(env=env, stage=stage).chosen_games().spec.max_cycles == limit
        named = EvaluationArguments(env=env, stage=stage, paths=("env.max_cycles=7",))
        assert named.chosen_games().spec.max_cycles == 7


def test_a_stage_whose_networks_cannot_go_on_is_refused(tmp_path):
    """Else a run dies after its first stage: s6 has other words than s1."""
    settings = tiny_settings(stages=("s1", "s6"))
    with pytest.raises(CheckpointError):
        run_curriculum(settings, tmp_path / "run")
    assert not list(tmp_path.iterdir())

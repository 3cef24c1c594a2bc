"""Options on a command line: of environments, learners and losses, and how many processes simulate."""

import re

import pytest

from magrounding.agents.policy import CONTRAST
from magrounding.cli import train
from magrounding.cli.options import assignments, choose_workers
from magrounding.cli.train import requested
from magrounding.envs.make import Game
from magrounding.errors import ConfigurationError
from magrounding.experiment.config import parse_config
from tests.experiment.tiny_runs import learn


def asked(**arguments):
    return requested(train.Arguments(env="ma_rtfm", **arguments))


def test_options_of_the_environment_are_settings_of_the_run():
    typed = ("env.max_cycles=7", "env_options.size=9", 'env.death="individual"', "env.sight=null")
    settings = asked(preset="quick", paths=typed)
    assert settings.env_options == {"max_cycles": 7, "size": 9, "death": "individual", "sight": None, "agents": 2}
    assert settings.resolve().stages["s1"].sets["eval_10x10"].options["size"] == 10
    assert settings.resolve().stages["s1"].games.spec.max_cycles == 7
    assert parse_config(settings.as_dict()).env_options == settings.env_options


@pytest.mark.parametrize("words", [["env.size"], ["=3"], ["env.size=9", "env_options.size=9"], ["a.b=1", "a.b=2"]])
def test_a_word_is_an_option_and_its_value_once(words):
    assert {path: value for path, (_, value) in assignments(["network.x=[4,5]", "y=a=b"]).items()} == {
        "network.x": "[4,5]",
        "y": "a=b",
    }
    with pytest.raises(ConfigurationError):
        assignments(words)


def test_weights_of_losses_join_those_of_every_phase():
    before = [phase.learner.weights for _, phase in asked(preset="quick").walk()]
    heavier = asked(preset="quick", paths=("learner.weights.modelling=0.7",))
    after = [phase.learner.weights for _, phase in heavier.walk()]
    assert [{**weights, "modelling": 0.7} for weights in before] == after
    assert any(len(weights) > 1 for weights in after)
    with pytest.raises(ConfigurationError, match=r"unknown auxiliary loss 'height'; choose from: .*modelling"):
        asked(preset="quick", paths=("learner.weights.height=1",))


def test_any_entry_of_a_run_is_set_by_its_path():
    settings = asked(paths=("phases.s1.0.num_envs=7", 'evaluation.final_sets=["eval"]', "save_every=5"))
    assert next(phase.num_envs for _, phase in settings.walk()) == 7
    assert settings.evaluation.final_sets == ("eval",)
    assert settings.save_every == 5.0
    assert {phase.num_envs for _, phase in asked(paths=("phases.*.*.num_envs=7",)).walk()} == {7}
    wrong = ("phases.s9.0.num_envs=7", "evaluation.evry=7", "evaluation=7", "evaluation.every.x=7", "learner.speed=3")
    for word in (*wrong, "network.hidden=wide", "env.colour=red", "agents=3"):
        with pytest.raises(ConfigurationError, match=re.escape(word)):
            asked(paths=(word,))


def test_a_preset_asks_no_contrast_of_a_network_that_has_none():
    def weights(agent, *paths):
        arguments = train.Arguments(env="messenger", agent=agent, preset="quick_rl", paths=paths)
        return [phase.learner.weights[CONTRAST] for _, phase in requested(arguments).walk()]

    assert weights("relread") == [0.03] * 3
    assert weights("emma") == [1.0] * 3  # which does not ground symbols with less
    assert weights("sir") == weights("sir", "learner.weights.contrast=0") == [0.0] * 3


@pytest.mark.parametrize(
    "arguments",
    [
        {"env": "ma_rtfm", "agent": "endi_dis_relread", "preset": "quick", "paths": ["learner.weights.contrast=1"]},
        {"env": "messenger", "preset": "quick_rl", "paths": ["network.similarity=0"]},
        {"env": "rtfm", "agent": "film", "preset": "quick", "paths": ["learner.weights.contrast=1"]},
    ],
)
def test_a_contrast_that_the_networks_options_leave_out_is_refused_before_anything_runs(tmp_path, arguments):
    """It was found out in the first update, when the run's folder was there."""
    with pytest.raises(ConfigurationError):
        learn(requested(train.Arguments(**arguments)), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_processes_are_for_simulators():
    batches, simulator = Game.of("ma_rtfm", {}), Game.of("babyai", {})
    assert (choose_workers(None, batches), choose_workers(0, batches)) == (0, 0)
    assert [choose_workers(number, simulator) for number in (None, 0, 3)] == [2, 0, 3]
    with pytest.raises(ConfigurationError):
        choose_workers(2, batches)
    with pytest.raises(ConfigurationError):
        choose_workers(-1, simulator)

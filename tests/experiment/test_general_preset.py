"""The preset for every environment: it is there, fits the evaluation sets, and says at once what cannot be."""

import sys

import pytest

import magrounding as mg
from magrounding.errors import ConfigurationError
from magrounding.experiment.config import make_config
from magrounding.experiment.presets import GENERAL, default_preset, find_preset, presets_of
from magrounding.registry import ENVS
from magrounding.spec import EnvSpec, FixedActions
from tests.agents.test_fieldread import FIELDS, WORDS

PLAN = mg.EvaluationPlan({"easy": {"split": "easy"}, "hard": {"split": "hard"}, "odd": {}})


class Own:
    """A game that describes itself, and that nothing has to start."""

    def __init__(self, agents=2, split="easy"):
        self.agents = agents

    def describe(self):
        return EnvSpec(FIELDS["no mask"], self.agents, FixedActions(("left", "middle", "right")), WORDS, 5)

    def make_env(self, render_mode=None):
        raise AssertionError("nothing is started for a question")


@pytest.fixture
def own(monkeypatch):
    """The registered id of `Own`."""
    for id, plan in (("own", PLAN), ("bare", mg.EvaluationPlan())):
        entry = mg.EnvEntry(id, "own_games:Own", multi_agent=True, evaluation=plan)
        monkeypatch.setitem(ENVS._entries, id, entry)
    monkeypatch.setitem(sys.modules, "own_games", sys.modules[__name__])


def test_an_environment_without_presets_has_the_general_one(own):
    assert presets_of("own") == (GENERAL,)
    assert default_preset("own") == GENERAL
    assert default_preset("ma_rtfm") == "demo"
    assert presets_of("ma_rtfm")[-1] == GENERAL
    for preset, env in (("quick", "own"), ("general", "onw")):
        with pytest.raises(ConfigurationError):
            find_preset(preset, env)


@pytest.mark.parametrize(("env", "sets"), [("own", ("easy", "hard")), ("bare", ("train",))])
def test_it_is_judged_on_the_sets_of_the_environments_plan(own, env, sets):
    settings = make_config(env, preset=GENERAL)
    assert (settings.agent, settings.agents) == ("fieldread", 2)
    assert settings.evaluation.watched_sets == sets
    assert settings.evaluation.selection_set == sets[0]
    assert settings.make_network() is not None
    assert "action_mask" in settings.resolve().stages[""].games.spec, "every action counts where a game shows no mask"
    assert not settings.imitates

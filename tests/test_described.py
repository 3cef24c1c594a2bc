"""What a question needs: no world is started, and no simulator installed, to describe, to build or to load."""

import sys

import pytest

import magrounding as mg
from magrounding.agents.policy import Policy
from magrounding.envs.messenger.world import MessengerWorld
from magrounding.envs.rtfm.world import RTFMWorld
from magrounding.errors import MissingExtra
from magrounding.experiment.config import make_config
from magrounding.experiment.presets import default_preset
from magrounding.pretrained import PREFIX, pretrained_names
from magrounding.registry import PRESETS
from magrounding.single.alfworld import ALFWorld
from magrounding.single.babyai import BabyAI
from magrounding.single.nethack import NetHack
from magrounding.single.scienceworld import ScienceWorld
from magrounding.single.touchdown import Touchdown
from magrounding.spec import EnvSpec

STAGES = [(entry.id, stage) for entry in mg.ENVS.values() for stage in entry.stages]
OTHERS = {
    "rtfm": {"size": 8, "split": "eval"},
    "rock_paper_scissors": {"split": "eval"},
    "ma_rtfm": {"agents": 3, "max_cycles": 50},
    "messenger": {"max_cycles": 9},
    "ma_messenger": {"agents": 3},
    "babyai": {"split": "test", "max_cycles": 7},
    "scienceworld": {"split": "test", "max_cycles": 7, "simplifications": ""},
    "alfworld": {"split": "test", "max_cycles": 7, "games": "nowhere"},
    "nethack": {"split": "test", "max_cycles": 7, "thresholds": "new"},
    "touchdown": {"split": "test", "max_cycles": 7, "turned": True},
}
"""Some options beside the stage."""
MODULES = {"babyai": "minigrid", "alfworld": "alfworld", "scienceworld": "scienceworld", "nethack": "nle"}
"""Extra and id → the module that it brings."""


@pytest.fixture(autouse=True)
def nothing_starts(monkeypatch):
    def refuse(*_arguments, **_options):
        raise AssertionError("a world is started for a question")

    monkeypatch.setattr(RTFMWorld, "__init__", refuse)
    monkeypatch.setattr(MessengerWorld, "__init__", refuse)
    for game in (ALFWorld, BabyAI, ScienceWorld, NetHack, Touchdown):
        monkeypatch.setattr(game, "make_env", refuse)
    for module in (*MODULES.values(), "py4j"):
        monkeypatch.setitem(sys.modules, module, None)  # what is imported now is not there


@pytest.mark.parametrize(("id", "stage"), STAGES)
def test_every_stage_is_described(id, stage):
    entry = mg.ENVS[id]
    spec = entry.describe(**entry.with_stage(stage))
    assert isinstance(spec, EnvSpec)
    assert spec.num_actions == len(spec.actions.names) > 1
    assert spec["action_mask"].shape == (spec.num_actions,)
    assert spec.texts
    assert all(text.high < spec.vocabulary_size for text in spec.texts)
    other = entry.describe(**entry.with_stage(stage), **OTHERS.get(id, {}))
    assert other.vocabulary_hash == spec.vocabulary_hash, "weights of the one load in the other"
    assert other.max_cycles == OTHERS[id].get("max_cycles", other.max_cycles)
    assert other.num_agents == OTHERS[id].get("agents", spec.num_agents)


@pytest.mark.parametrize("id", mg.ENVS)
def test_every_evaluation_set_is_described(id):
    entry = mg.ENVS[id]
    for stage in entry.stages:
        train = entry.describe(**entry.with_stage(stage))
        for name, options in entry.evaluation.sets_of(stage).items():
            assert entry.describe(**{**entry.with_stage(stage), **options}).reads_alike(train), name


@pytest.mark.parametrize("id", sorted({entry.env for entry in PRESETS.values()}))
def test_networks_are_built_from_the_description(id):
    settings = make_config(id, preset=default_preset(id))
    network = settings.make_network()
    assert isinstance(network, Policy)
    assert sum(parameter.numel() for parameter in network.parameters()) > 1000


@pytest.mark.parametrize("name", pretrained_names())
def test_teams_load(name):
    team = mg.load_team(f"{PREFIX}{name}")
    assert team.num_agents == len(team.policies) == team.spec.num_agents


@pytest.mark.parametrize("id", MODULES)
@pytest.mark.parametrize("make", [mg.make, lambda id: mg.make_vec(id, 2)], ids=["make", "make_vec"])
def test_without_the_extra_the_line_to_type_is_named(make, id, monkeypatch):
    monkeypatch.undo()
    for name in {MODULES[id], *(name for name in sys.modules if name.startswith(f"{MODULES[id]}."))}:
        monkeypatch.setitem(sys.modules, name, None)  # an earlier test may have imported it
    with pytest.raises(MissingExtra):
        make(id)

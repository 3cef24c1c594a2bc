"""Whatever a session gets hold of is shown in a few lines of a terminal."""

from pathlib import Path

import numpy as np
import pytest
import torch

import magrounding as mg
from magrounding.brief import brief
from magrounding.experiment.config import make_config
from magrounding.experiment.presets import find_preset
from magrounding.play.evaluate import evaluate
from magrounding.play.lineup import Lineup
from magrounding.play.player import Player, shown_to
from magrounding.play.script import Script
from magrounding.play.scripted import random_team
from tests.experiment.tiny_runs import tiny_run

MOST = 300


def everything():
    """(name, object) of what the calls of a first session return, and of what these hold."""
    for id in ("ma_rtfm", "messenger", "touchdown"):
        entry = mg.ENVS[id]
        config = entry.configure()
        yield from ((f"entry of {id}", entry), (f"plan of {id}", entry.evaluation), (f"config of {id}", config))
        spec = entry.describe()
        yield from ((f"spec of {id}", spec), (f"actions of {id}", spec.actions), (f"words of {id}", spec.vocabulary))
        yield from ((f"{field.name} of {id}", field) for field in spec.fields)
        yield f"env of {id}", mg.make(id)
    for registry in (mg.ENVS, mg.AGENTS, mg.ALGORITHMS, mg.PRESETS):
        yield registry.kind, registry
        yield from ((f"{registry.kind} {each.id}", each) for each in registry.values())
    vec = mg.make_vec("ma_rtfm", 3, stage="s5", agents=2)
    observation, info = vec.reset(seed=0)
    yield from (("vec", vec), ("info", info), ("a fact", vec.facts(0)[0]))
    team = mg.load_team("pretrained:ma_rtfm-s5-2agents")
    yield from (("team", team), ("origin", team.origin), ("its spec", team.spec), ("network", team.policies[0]))
    shown = shown_to(0, observation, vec.spec, info.document)
    player = Player(team.policies[0], vec.spec, 3)
    batch = player.batch(shown, np.ones(3, np.bool_))
    with torch.no_grad():
        yield from (("shown", shown), ("batch", batch), ("output", team.policies[0](batch)), ("player", player))
    yield from ((f"reading of {name}", reading) for name, reading in batch.texts.items())
    yield "chosen", player.choose(shown, np.ones(3, np.bool_))
    yield "evaluation", evaluate(random_team, "ma_rtfm", {"stage": "s1", "max_cycles": 5}, 4, 0)
    yield "line-up", Lineup.parse("run:" + "long/" * 99, 3)
    yield "script", Script.parse("left * 5000")
    for env in ("ma_rtfm", "babyai"):
        preset = find_preset("quick", env)
        yield from (("preset", preset), ("settings", make_config(env, preset="quick")))
        yield from (("phase", phase) for phases in preset.phases.values() for phase in phases)
        yield from (("learner", phase.learner) for phases in preset.phases.values() for phase in phases)


def test_the_repr_of_everything_public_is_short():
    seen = [(name, each, repr(each)) for name, each in everything()]
    assert len(seen) > 150
    assert [(name, len(said), said[:80]) for name, _, said in seen if len(said) >= MOST] == []


def test_a_repr_says_what_tells_things_apart():
    spec = mg.ENVS["ma_rtfm"].describe()
    assert "num_agents=2" in repr(spec)
    assert repr(mg.ENVS["rtfm"]).startswith("EnvEntry(id='rtfm', game='magrounding.envs.rtfm")
    assert "relread" in repr(make_config("ma_rtfm"))
    assert repr(mg.load_team("pretrained:messenger-s2").policies[0]).startswith("Relread(")


def test_a_run_is_shown_in_a_line_and_has_its_rows(tmp_path):
    run = mg.load_run(tiny_run(tmp_path / "run", "s1"))
    assert repr(run).startswith("RunResults(")
    assert len(repr(run)) < MOST
    assert {"training", "after", "end"} <= set(run.rows["when"])
    with pytest.raises(mg.MagroundingError, match="nothing"):
        mg.load_run(tmp_path / "nothing")


class Long:
    """What has no short repr of its own."""

    def __repr__(self):
        return "x" * 10_000


def test_a_field_of_any_kind_is_cut():
    from dataclasses import dataclass

    @dataclass
    class Held:
        a: object
        b: object

        __repr__ = brief

    for value in (Long(), "y" * 10_000, b"z" * 10_000, list(range(10_000)), {"k": np.zeros(9)}, Path("p" * 10_000)):
        assert len(repr(Held(value, value))) < MOST
    assert repr(Held(1, np.zeros((2, 3), np.int16))) == "Held(a=1, b=int16[2, 3])"
    assert repr(Held({}, (1, 2))) == "Held(a={}, b=(1, 2))"

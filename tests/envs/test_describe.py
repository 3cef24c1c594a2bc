"""Compiled worlds are described, and their options refused, without one being started."""

import subprocess
import sys

import numpy as np
import pytest

import magrounding as mg
from magrounding.envs.compiled import CompiledWorld
from magrounding.envs.messenger.entry import ENVS as MESSENGER
from magrounding.envs.messenger.world import MessengerWorld
from magrounding.envs.rtfm.entry import ENVS as RTFM
from magrounding.envs.rtfm.world import RTFMWorld
from magrounding.errors import ConfigurationError, DataNotFound
from magrounding.spec import EPISODE, EVENTS, EXPERT, FACTS, PLACES, SCENE, SNAPSHOT, STATE, STEP, WON
from tests.envs.episode_digest import CASES

IDS = [entry.id for entry in (*RTFM, *MESSENGER)]
MORE = {
    "rtfm, sight and size": ("rtfm", {"sight": 2, "size": 9, "split": "eval_paraphrase"}),
    "ma_rtfm, alone": ("ma_rtfm", {"agents": 1, "stage": "s4"}),
    "messenger, symbols": ("messenger", {"game_id": True, "stage": "s3"}),
    "ma_messenger, a crowd": ("ma_messenger", {"agents": 7, "stage": "s2", "max_cycles": 5}),
    **{id: (id, {}) for id in IDS},
}

WRONG = [
    ("ma_rtfm", {"stage": "s9"}),
    ("ma_rtfm", {"stage": ["s1"]}),
    ("rtfm", {"task": None}),
    ("rock_paper_scissors", {"split": "eval_new"}),
    ("rock_paper_scissors", {"layout": "stream"}),
    ("rtfm", {"agents": 2}),
    ("ma_rtfm", {"agents": 2.0}),
    ("ma_rtfm", {"agents": 10_000}),
    ("rtfm", {"size": 4}),
    ("ma_rtfm", {"agents": 3, "stage": "s2", "size": 5}),
    ("rtfm", {"max_cycles": 2**31}),
    ("rtfm", {"sight": -1}),
    ("rtfm", {"sight": True}),
    ("rtfm", {"sight": 10**400}),
    ("rtfm", {"chase_range": float("nan")}),
    ("rtfm", {"occupants": True}),
    ("rtfm", {"resample_text": "yes"}),
    ("rtfm", {"manual": "false"}),
    ("ma_rtfm", {"stage": "s6", "constructions": "rhyme"}),
    ("ma_rtfm", {"stage": "s6", "constructions": 3}),
    ("ma_rtfm", {"stage": "s5", "constructions": "respectively"}),
    ("ma_rtfm", {"stage": "s5", "split": "eval_construction"}),
    ("ma_rtfm", {"stage": "s6", "split": "eval_construction", "constructions": "gapping+passive"}),
    ("ma_rtfm", {"stage": "s5", "split": "eval_minimal"}),
    ("ma_rtfm", {"stage": "s6", "split": "eval_minimal", "constructions": "passive"}),
    ("ma_rtfm", {"stage": "s6", "split": "eval_minimal", "agents": 4}),
    ("ma_rtfm", {"stage": "s1", "split": "eval_minimal", "constructions": "all", "agents": 1}),
    ("ma_rtfm", {"stage": "s6", "omission": 0.5}),
    ("rtfm", {"omission": 1.5}),
    ("rtfm", {"task": "nl", "constructions": "all", "omission": 0.1}),
    ("rtfm", {"task": "nl", "constructions": "all", "split": "eval_minimal", "distraction": 0.5}),
    ("messenger", {"stage": "s4"}),
    ("messenger", {"split": "eval"}),
    ("messenger", {"max_cycles": 0}),
    ("messenger", {"game_id": 1}),
    ("messenger", {"corpus": 3}),
    ("messenger", {"layout": "merged"}),
    ("messenger", {"layout": "stream", "game_id": True}),
    ("messenger", {"omission": 0.5, "game_id": True}),
    ("ma_messenger", {"agents": 10}),
]


@pytest.fixture
def no_world(monkeypatch):
    def refuse(*_arguments, **_options):
        raise AssertionError("a world is started for a question")

    for world in (CompiledWorld, RTFMWorld, MessengerWorld):
        monkeypatch.setattr(world, "__init__", refuse)


@pytest.mark.parametrize("name", [*CASES, *MORE])
def test_the_description_is_that_of_the_world(name):
    id, options = (CASES | MORE)[name]
    described, vec = mg.ENVS[id].describe(**options), mg.make_vec(id, 3, **options)
    assert described == vec.spec == vec.world.spec == mg.make(id, **options).spec
    vec.reset(seed=0)
    assert vec.state().shape == (3, described.state_size)
    assert vec.state().dtype == np.int16


@pytest.mark.parametrize("name", MORE)
def test_no_world_is_started_for_it(name, no_world):
    id, options = MORE[name]
    spec = mg.ENVS[id].describe(**options)
    assert spec is mg.ENVS[id].describe(**options), "it is made once"
    assert spec.num_agents == options.get("agents", 2 if mg.ENVS[id].multi_agent else 1)
    with pytest.raises(AssertionError):
        mg.make_vec(id, 1, **options)


@pytest.mark.parametrize("entry", [*RTFM, *MESSENGER], ids=lambda entry: entry.id)
def test_what_the_registry_lists_can_be_had(entry, no_world):
    assert set(entry.curriculum) <= set(entry.stages)
    for stage in entry.stages:
        for options in entry.evaluation.sets_of(stage).values():
            assert entry.describe(**entry.with_stage(stage), **options).reads_alike(
                entry.describe(**entry.with_stage(stage))
            )
    assert entry.multi_agent == ("agents" in entry.options)


@pytest.mark.parametrize(("id", "options"), WRONG, ids=str)
def test_wrong_options_are_refused_before_a_world_is_started(id, options, no_world):
    for ask in (mg.ENVS[id].configure, mg.ENVS[id].describe):
        with pytest.raises(ConfigurationError):
            ask(**options)


def test_a_missing_corpus_is_found_missing_by_a_question(tmp_path, no_world):
    with pytest.raises(DataNotFound):
        mg.ENVS["messenger"].describe(corpus=str(tmp_path))


@pytest.mark.parametrize("id", IDS)
def test_what_they_can_do(id):
    spec = mg.ENVS[id].describe()
    facts = {FACTS} if id in ("rtfm", "ma_rtfm") else set()
    assert spec.capabilities == {STATE, SNAPSHOT, PLACES, SCENE, EVENTS} | facts
    assert EXPERT not in spec.capabilities, "their experts are oracles, which are made of a vector env"
    assert (spec.outcome, spec.time_limit_is_loss) == (WON, True)
    assert set(spec.shared_texts) == {"manual", "goal"} & {field.name for field in spec.fields}


def test_texts_that_are_redrawn_last_for_a_step():
    fixed, redrawn = (mg.ENVS["rtfm"].describe(task="nl", resample_text=flag) for flag in (False, True))
    assert {text.lifetime for text in fixed.texts} == {EPISODE}
    assert {text.lifetime for text in redrawn.texts} == {STEP}
    assert redrawn.shared_texts == ()


def test_a_description_needs_no_kernels():
    code = (
        "import sys, magrounding as mg\n"
        "del sys.modules['magrounding.envs.world']\n"  # the interface, which the package imports
        f"for id in {IDS}: mg.ENVS[id].describe()\n"
        "print([name for name in sys.modules if name in ('torch', 'PIL') or name.endswith(('.kernels', '.world'))])"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"

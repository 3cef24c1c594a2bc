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
from tests.envs.test_rtfm_options import WRONG

IDS = [entry.id for entry in (*RTFM, *MESSENGER)]
MORE = {
    "rtfm, sight and size": ("rtfm", {"sight": 2, "size": 9, "split": "eval_paraphrase"}),
    "ma_rtfm, alone": ("ma_rtfm", {"agents": 1, "stage": "s4"}),
    "messenger, symbols": ("messenger", {"game_id": True, "stage": "s3"}),
    "ma_messenger, a crowd": ("ma_messenger", {"agents": 7, "stage": "s2", "max_cycles": 5}),
    **{id: (id, {}) for id in IDS},
}
WRONG_MESSENGER = [
    ("messenger", {"stage": "s4"}, "stage"),
    ("messenger", {"stage": "s4", "max_cycles": 9}, "stage"),
    ("messenger", {"agents": 2}, "option"),
    ("messenger", {"split": "eval"}, "split"),
    ("messenger", {"manual": "false"}, "manual"),
    ("messenger", {"max_cycles": 0}, "max_cycles"),
    ("messenger", {"max_cycles": True}, "max_cycles"),
    ("messenger", {"game_id": 1}, "game_id"),
    ("messenger", {"corpus": 3}, "corpus"),
    ("ma_messenger", {"agents": 0}, "agents"),
    ("ma_messenger", {"agents": 50}, "around the middle"),
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
    # What the kernels fill is as long as what is described.
    tables = vec.world._tables
    if isinstance(vec.world, RTFMWorld):
        statements = tables.element_lists.shape[1] + tables.team_lists.shape[1]
        longest = max(tables.element_sentences.shape[-1], tables.team_sentences.shape[-1])
        if vec.world.game.resolved_layout == "statements":  # other rows: test_rtfm_layouts, test_rtfm_constructions
            assert described["manual"].shape == (statements, longest)
        assert described["goal"].shape == tables.goal_sentences.shape[-1:]
    elif not vec.world.game.game_id:
        assert described["manual"].shape[1] == tables.sentences.shape[1]
    vec.reset(seed=0)
    assert vec.state().shape == (3, described.state_size)
    assert vec.state().dtype == np.int16


@pytest.mark.parametrize("name", [*CASES, *MORE])
def test_no_world_is_started_for_it(name, no_world):
    id, options = (CASES | MORE)[name]
    spec = mg.ENVS[id].describe(**options)
    assert spec is mg.ENVS[id].describe(**options), "it is made once"
    assert spec.num_agents == options.get("agents", 2 if mg.ENVS[id].multi_agent else 1)
    with pytest.raises(AssertionError, match="started"):
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


@pytest.mark.parametrize(("id", "options", "word"), WRONG + WRONG_MESSENGER, ids=str)
def test_wrong_options_are_refused_before_a_world_is_started(id, options, word, no_world):
    if "num_threads" in options:
        return  # no option of a game
    for ask in (mg.ENVS[id].configure, mg.ENVS[id].describe):
        with pytest.raises(ConfigurationError, match=word) as error:
            ask(**options)
        assert "\n" not in str(error.value)


def test_a_missing_corpus_is_found_missing_by_a_question(tmp_path, no_world):
    with pytest.raises(DataNotFound, match="text_train"):
        mg.ENVS["messenger"].describe(corpus=str(tmp_path))


def test_the_state_lies_where_it_always_has():
    assert mg.ENVS["ma_rtfm"].describe(agents=3, size=6).state_layout() == {
        "grid": (slice(0, 144), (6, 6, 4)),
        "agents": (slice(144, 159), (3, 5)),
    }
    assert mg.ENVS["messenger"].describe(stage="s1").state_layout() == {
        "grid": (slice(0, 400), (10, 10, 4)),
        "agents": (slice(400, 404), (1, 4)),
    }


@pytest.mark.parametrize("id", IDS)
def test_what_they_can_do(id):
    spec, vec = mg.ENVS[id].describe(), mg.make_vec(id, 2)
    facts = {FACTS} if id in ("rtfm", "ma_rtfm") else set()
    assert spec.capabilities == {STATE, SNAPSHOT, PLACES, SCENE, EVENTS} | facts
    assert EXPERT not in spec.capabilities, "their experts are oracles, which are made of a vector env"
    assert (spec.outcome, spec.time_limit_is_loss) == (WON, True)
    vec.reset(seed=0)
    vec.restore(vec.snapshot())
    assert vec.entity_places().shape[::2] == (2, 2)
    assert vec.world.scene(0).figures
    assert set(spec.shared_texts) == {"manual", "goal"} & {field.name for field in spec.fields}


def test_texts_that_are_redrawn_last_for_a_step():
    fixed, redrawn = (mg.ENVS["rtfm"].describe(task="nl", resample_text=flag) for flag in (False, True))
    assert {text.lifetime for text in fixed.texts} == {EPISODE}
    assert {text.lifetime for text in redrawn.texts} == {STEP}
    assert redrawn.shared_texts == ()


def test_limits_are_those_of_the_stages_or_as_chosen():
    limits = {stage: mg.ENVS["messenger"].describe(stage=stage).max_cycles for stage in ("s1", "s2", "s3")}
    assert limits == {"s1": 4, "s2": 64, "s3": 128}
    assert mg.ENVS["ma_messenger"].describe(stage="s4", max_cycles=9).max_cycles == 9
    assert mg.ENVS["ma_rtfm"].describe().max_cycles == 1000


def test_a_description_needs_no_kernels():
    code = (
        "import sys, magrounding as mg\n"
        "del sys.modules['magrounding.envs.world']\n"  # the interface, which the package imports
        f"for id in {IDS}: mg.ENVS[id].describe()\n"
        "print([name for name in sys.modules if name in ('torch', 'PIL') or name.endswith(('.kernels', '.world'))])"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"

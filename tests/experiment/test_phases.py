"""Stages of two phases: a teacher first, rewards after; what each leaves behind, and that no report mixes them up."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import magrounding as mg
from magrounding.errors import ConfigurationError
from magrounding.experiment import evaluate as evaluation
from magrounding.experiment.checkpoint import pack_learners
from magrounding.experiment.config import read_config
from magrounding.experiment.metrics import read_metrics
from magrounding.experiment.phase import Promotion, Ramp
from magrounding.experiment.stage import StageSession
from magrounding.registry import ENVS
from magrounding.run_folder import METRICS_FILE
from magrounding.storage import read_json
from magrounding.teams.evaluate import TRUE_MANUAL
from tests.experiment.tiny_runs import (
    IMITATION,
    LEARNER,
    killed_run,
    learn,
    phases_of,
    resume,
    timeless,
    tiny_settings,
    weights_of,
)
from tests.full import in_full

SHORT = Promotion(steps=90)
TAUGHT = {**phases_of({"s1": SHORT}, IMITATION, LEARNER), **phases_of(60)}


def taught_settings(**changes):
    """s1 with a teacher, then from rewards; s2 from rewards only."""
    few = {"every": 60, "final_sets": ("eval",), "log_every": 1}
    return tiny_settings(**{"stages": ("s1", "s2"), "phases": TAUGHT, **few, **changes})


@pytest.fixture(scope="module")
def taught(tmp_path_factory):
    """An uninterrupted run."""
    folder = tmp_path_factory.mktemp("runs") / "taught"
    learn(taught_settings(), folder)
    return folder


def test_each_phase_leaves_its_weights(taught):
    states = [read_json(taught / name / "state.json") for name in ("s1/imitate", "s1", "s2")]
    assert [(state["stage"], state["phase"], state["phase_steps"], state["total_steps"]) for state in states] == [
        ("s1", "imitate", 90, 90),
        ("s1", "reinforce", 90, 180),
        ("s2", "reinforce", 60, 240),
    ]
    assert not (taught / "s2" / "imitate").exists()
    assert not torch.equal(weights_of(taught, "s1"), weights_of(taught, "s1/imitate"))
    team = mg.load_team(taught, stage="s1")
    parameters = [torch.cat([p.flatten() for _, p in sorted(q.state_dict().items())]) for q in team.policies]
    assert torch.equal(torch.stack(parameters), weights_of(taught, "s1"))


@pytest.mark.parametrize(("won", "stays"), [(0.55, True), (0.65, False)])
def test_weights_that_win_more_by_chance_do_not_take_the_place_of_those_of_the_phase_before(
    tmp_path, monkeypatch, won, stays
):
    evaluate, run = evaluation.play_set, tmp_path / "run"

    def half_and_then_more(session, *which, **how):
        result = evaluate(session, *which, **how)
        learnt = session.phase.name == "reinforce" and any(learner.optimizer.state for learner in session.learners)
        result.won[:] = np.arange(len(result.won)) < (won if learnt else 0.5) * len(result.won)
        return result

    monkeypatch.setattr(evaluation, "play_set", half_and_then_more)
    settings = taught_settings(stages=("s1",))
    more = replace(settings.evaluation, selection_games=100)  # 7.1 % is a standard error
    learn(replace(settings, evaluation=more), run)
    assert (read_json(run / "s1" / "state.json")["steps"] == 0) == stays
    assert torch.equal(weights_of(run, "s1"), weights_of(run, "s1/imitate")) == stays


@pytest.mark.parametrize(
    ("stage", "phase", "steps"),
    in_full([("s1", 0, 60), ("s1", 1, 0), ("s1", 1, 60), ("s2", 0, 0)], [("s1", 1, 60)]),
)
def test_a_run_killed_in_any_phase_ends_the_same(taught, tmp_path, stage, phase, steps):
    where = {"stage": ("s1", "s2").index(stage), "phase": phase, "steps": steps}
    killed_run(taught_settings(), tmp_path / "run", lambda position: where.items() <= position.items())
    assert (tmp_path / "run" / "s1" / "imitate").exists() == (stage != "s1" or phase > 0)
    resume(tmp_path / "run")
    for name in ("s1/imitate", "s1", "s2"):
        assert torch.equal(weights_of(tmp_path / "run", name), weights_of(taught, name))
    assert timeless(tmp_path / "run") == timeless(taught)


def started_with(settings, folder, monkeypatch):
    """(stage, phase) → the session's weights and optimisers at the start of the phase."""
    started, start = {}, StageSession.start

    def noted(self):
        started[self.segment.stage.name, self.phase.name] = pack_learners(self.learners)
        start(self)

    monkeypatch.setattr(StageSession, "start", noted)
    learn(settings, folder)
    return started


def test_rewards_go_on_from_what_the_teacher_taught(tmp_path, monkeypatch):
    started = started_with(taught_settings(), tmp_path / "run", monkeypatch)
    for key, saved in (("s1", "reinforce"), "s1/imitate"), (("s2", "reinforce"), "s1"):
        own = [
            torch.cat([tensor.flatten() for name, tensor in sorted(started[key].items()) if name.startswith(prefix)])
            for prefix in ("learner_0/weights/", "learner_1/weights/")
        ]
        assert torch.equal(torch.stack(own), weights_of(tmp_path / "run", saved))
    # RMSProp knows nothing to do with Adam's statistics, but goes on with its own.
    assert not any("optimizer" in name for name in started["s1", "reinforce"])
    assert any("optimizer" in name for name in started["s2", "reinforce"])


@pytest.mark.parametrize(
    ("chain", "told"),
    [
        ("r r", ["reinforcement alone"] * 2),
        ("i i", ["imitation"] * 2),
        ("ir r", ["imitation", "reinforcement after imitation", "reinforcement after imitation"]),
        ("r ir", ["reinforcement alone", "imitation", "reinforcement after imitation"]),
    ],
)
def test_how_weights_came_about(chain, told):
    """A letter for each phase, a word for each stage."""
    kinds = {"i": IMITATION, "r": LEARNER}
    phases = {}
    for stage, word in zip(("s1", "s2"), chain.split(), strict=True):
        phases |= phases_of({stage: SHORT}, *(kinds[letter] for letter in word))
    settings = tiny_settings(stages=("s1", "s2"), phases=phases)
    assert [segment.learnt_by for segment in settings.resolve().segments] == told
    assert settings.imitates == ("i" in chain)


def test_a_teacher_has_to_be_there_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.setitem(ENVS._entries, "ma_rtfm", replace(ENVS["ma_rtfm"], oracle=None))
    with pytest.raises(ConfigurationError):
        learn(taught_settings(), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_phase_may_learn_from_games_of_its_own():
    """Its own options count for what is learnt from, and for nothing that is measured."""
    phases = {"s1": (replace(TAUGHT["s1"][0], env_options={"split": "eval", "max_cycles": 5}), TAUGHT["s1"][1])}
    settings = taught_settings(stages=("s1",), phases=phases)
    sessions = [StageSession(segment, 0, torch.device("cpu")) for segment in settings.resolve().segments]
    told = [(session.vec.options.get("split"), session.vec.options["max_cycles"]) for session in sessions]
    assert told == [("eval", 5), (None, 8)]  # of training, as nothing else is said
    assert settings.resolve().stages["s1"].sets["eval_new"].options == {
        "stage": "s1",
        "agents": 2,
        "max_cycles": 8,
        "split": "eval_new",
    }


def growing(**changes):
    """s1 with manuals that grow from what a game needs to all of it within 60 steps, after 30."""
    ramps = {"omission": Ramp(1.0, 0.0, over=60, hold=30)}
    phases = {"*": (replace(phases_of({"*": SHORT}, IMITATION)["*"][0], ramps=ramps),)}
    return tiny_settings(
        **{"stages": ("s1",), "phases": phases, "every": None, "final_sets": ("eval",), "log_every": 1, **changes}
    )


def test_a_ramp_is_constant_then_linear_then_constant():
    ramp = Ramp(1.0, 0.2, over=80, hold=20)
    assert [ramp.at(steps) for steps in (0, 20, 60, 100, 1_000)] == pytest.approx([1.0, 1.0, 0.6, 0.2, 0.2])
    assert [ramp.with_budget(0.5).at(steps) for steps in (10, 30, 50)] == pytest.approx([1.0, 0.6, 0.2])


def test_games_follow_the_ramp_of_their_phase_and_evaluations_have_whole_manuals(tmp_path, monkeypatch):
    shown = {}
    iterate = StageSession.iterate

    def watched(self, steps):
        shown[steps] = self.vec.world.game.omission
        return iterate(self, steps)

    monkeypatch.setattr(StageSession, "iterate", watched)
    settings = growing()
    assert settings.resolve().stages["s1"].sets["eval"].options.get("omission", 0.0) == 0.0
    learn(settings, tmp_path / "run")
    assert shown == pytest.approx({0: 1.0, 30: 1.0, 60: 0.5})
    assert read_config(tmp_path / "run") == settings


def test_a_killed_run_goes_on_with_the_ramp_where_it_was(tmp_path):
    whole, resumed = tmp_path / "whole", tmp_path / "resumed"
    learn(growing(), whole)
    killed_run(growing(), resumed, lambda position: position["steps"] == 60)
    learn(growing(), resumed, resume=True)
    assert torch.equal(weights_of(resumed, "s1"), weights_of(whole, "s1"))


def reading_from(steps, monkeypatch):
    """Evaluations in which agents win, with true manuals alone, from so many environment steps on."""
    evaluate = evaluation.play_set

    def read(session, *which, **how):
        result = evaluate(session, *which, **how)
        learner = session.learners[0]
        gradient_steps = max((int(state["step"]) for state in learner.optimizer.state.values()), default=0)
        updates = gradient_steps / (IMITATION.epochs * IMITATION.minibatches)
        result.won[:] = how["manual"] == TRUE_MANUAL and updates * session.steps_per_update >= steps
        return result

    monkeypatch.setattr(evaluation, "play_set", read)


WHEN_IT_READS = Promotion(steps=240, reading=0.5)


def until_it_reads(until=WHEN_IT_READS, **changes):
    phase = growing().phases["*"][0]
    return growing(**{"phases": {"*": (replace(phase, until=until),)}, "every": 60, **changes})


@pytest.mark.parametrize(
    ("reads_from", "until", "ends"),
    [
        (120, Promotion(reading=0.5), 120),
        (120, Promotion(steps=150, reading=0.5, rule="all"), 150),
        (60, Promotion(reading=0.5), 90),  # when manuals are whole
        (600, Promotion(steps=150, reading=0.5), 150),
    ],
)
def test_a_phase_ends_once_true_manuals_win_so_much_more_than_reassigned_ones(
    tmp_path, monkeypatch, reads_from, until, ends
):
    reading_from(reads_from, monkeypatch)
    learn(until_it_reads(until), tmp_path / "run")
    assert read_json(tmp_path / "run" / "s1" / "state.json")["phase_steps"] == ends
    within = [line for line in read_metrics(tmp_path / "run" / METRICS_FILE) if line.get("when") == "within"]
    assert {(line["set"], line["manual"]) for line in within} == {
        ("train", "true"),
        ("eval", "true"),
        ("train", "reassigned"),
    }
    assert read_config(tmp_path / "run") == until_it_reads(until)


@pytest.mark.parametrize("changes", [{"every": None}, {"watched_sets": ("eval",)}])
def test_reading_that_no_evaluation_shows_is_refused(changes):
    with pytest.raises(ConfigurationError):
        until_it_reads(**changes).resolve()


@pytest.mark.parametrize(
    "ramps",
    [{"size": Ramp(8, 10, over=10)}, {"omission": Ramp(1.5, 0.0, over=10)}, {"omision": Ramp(1.0, 0.0, over=10)}],
)
def test_a_ramp_of_what_cannot_change_is_refused(ramps):
    phases = {"*": (replace(phases_of({"*": SHORT}, IMITATION)["*"][0], ramps=ramps),)}
    with pytest.raises(ConfigurationError):
        tiny_settings(stages=("s1",), phases=phases).resolve()

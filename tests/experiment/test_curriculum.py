"""A whole curriculum in seconds: what it leaves behind, when it promotes, what it carries over, how it resumes."""

import io
import re
import shlex
from itertools import count, product

import pytest
import torch
from rich.console import Console

import magrounding as mg
from magrounding.cli.train import ended
from magrounding.errors import CheckpointError, ConfigurationError, MagroundingError
from magrounding.experiment import evaluate as evaluation
from magrounding.experiment.checkpoint import pack_learners
from magrounding.experiment.config import read_config
from magrounding.experiment.metrics import read_metrics
from magrounding.experiment.phase import Promotion
from magrounding.experiment.results import read_results
from magrounding.experiment.stage import StageSession
from magrounding.progress import Display, duration
from magrounding.run_folder import METRICS_FILE, RunFolder
from magrounding.storage import read_json, write_json
from magrounding.teams.evaluate import LINES, MANUALS, PLAYS, REPORT_SEED, evaluate
from magrounding.training.ppo import PPOConfig
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

FOLDER_OF_A_RUN = {
    "config.json",
    "metrics.jsonl",
    "report.md",
    "report.rows.json",
    "curves.png",
    "baselines.json",
    "checkpoint.safetensors",
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """An uninterrupted run, on one thread."""
    folder = tmp_path_factory.mktemp("runs") / "whole"
    learn(tiny_settings(), folder, command="as typed")
    return folder


@pytest.mark.extension("trackers")
def test_a_run_leaves_everything_behind(finished):
    assert {path.name for path in finished.iterdir()} == FOLDER_OF_A_RUN | {"tensorboard", "s1", "s3"}
    for stage in ("s1", "s3"):
        names = {path.name for path in (finished / stage).iterdir()}
        assert names == {"agent_0.safetensors", "agent_1.safetensors", "state.json"}
    state = read_json(finished / "s3" / "state.json")
    assert state["vocabulary"] == mg.make_vec("ma_rtfm", 1).spec.vocabulary_hash
    assert (state["phase"], state["phase_steps"], state["total_steps"]) == ("reinforce", 180, 420)
    assert (finished / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert not list(finished.rglob("*partial*"))


def test_metrics_tell_the_whole_story(finished):
    lines = list(read_metrics(finished / METRICS_FILE))
    training = [line for line in lines if line["kind"] == "train"]
    assert [line["total_steps"] for line in training] == [60, 90, 120, 180, 240, 300, 330, 360, 420]
    assert sum(line["games"] for line in training) > 50
    for line in training:
        assert {"win_rate", "length", "agent_0/return", "learner_1/policy_loss", "learner_1/entropy"} <= line.keys()
    rates = [line["learner_0/learning_rate"] for line in training]
    assert rates[:5] == sorted(rates[:5], reverse=True)
    assert rates[5] > rates[4]  # the schedule starts anew with each stage
    within = [(e["stage"], e["steps"], e["set"]) for e in lines if e["kind"] == "evaluation" and e["when"] == "within"]
    assert within == [
        (s, k, e) for s, ks in (("s1", (90, 180, 240)), ("s3", (90, 180))) for k in ks for e in ("train", "eval")
    ]
    assert all(e["play"] == "sampled" for e in lines if e.get("when") == "within")
    after = [e for e in lines if e["kind"] == "evaluation" and e["when"] == "after"]
    sets = [("s1", "train"), ("s1", "eval")] + [("s3", name) for name in tiny_settings().entry.evaluation.sets]
    assert [(e["stage"], e["set"], e["play"]) for e in after if e["manual"] == "true"] == [
        (*where, play) for where in sets for play in ("greedy", "sampled")
    ]
    assert [(e["stage"], e["set"], e["manual"], e["play"]) for e in after if e["manual"] != "true"] == [
        (stage, "eval", manual, play)
        for stage in ("s1", "s3")
        for manual in ("reassigned", "of another game")
        for play in ("greedy", "sampled")
    ]
    phases = [line for line in lines if line["kind"] == "phase"]
    assert [(line["stage"], line["phase"]) for line in phases] == [("s1", "reinforce"), ("s3", "reinforce")]
    assert {"world", "acting", "learning", "evaluation", "saving"} <= phases[-1]["spent"].keys()
    seconds = [line["training_seconds"] for line in lines]
    assert seconds == sorted(seconds)
    assert phases[0]["phase_seconds"] == phases[0]["training_seconds"] > 0
    assert sum(line["phase_seconds"] for line in phases) == pytest.approx(seconds[-1], abs=0.02)
    assert seconds[-1] < lines[-1]["seconds"]  # evaluations are no training


def test_what_is_reported_is_what_the_saved_weights_do(finished):
    settings = read_config(finished)
    lines = [line for line in read_metrics(finished / METRICS_FILE) if line.get("when") == "after"]
    for stage, play, manual in product(("s1", "s3"), PLAYS, set(MANUALS) - set(LINES)):
        options = settings.resolve().stages[stage].sets["eval"].options
        team, greedy = mg.load_team(finished, stage=stage), play == "greedy"
        result = evaluate(team, "ma_rtfm", options, 8, REPORT_SEED, greedy=greedy, manual=manual)
        where = {"stage": stage, "set": "eval", "play": play, "manual": manual}
        line = next(line for line in lines if where.items() <= line.items())
        assert {name: line[name] for name in result.summary()} == pytest.approx(result.summary())


@pytest.mark.parametrize("after_saves", in_full([1, 2, 3, 5, 6, 9], [6]))
def test_a_run_killed_anywhere_ends_the_same(finished, tmp_path, after_saves):
    folder = tmp_path / "killed"
    saves = count()
    killed_run(tiny_settings(), folder, lambda position: next(saves) == after_saves - 1)
    with (folder / METRICS_FILE).open("a") as file:
        file.write('{"kind": "train", "half a li')
    resume(folder)
    for stage in ("s1", "s3"):
        assert torch.equal(weights_of(folder, stage), weights_of(finished, stage))
    assert timeless(folder) == timeless(finished)


def test_a_killed_run_of_ppo_ends_the_same(tmp_path):
    """PPO has state of its own: Adam's moments and step count, and minibatches that follow from the step."""
    txt2pi = {"agent": "txt2pi", "network": {"channels": (4, 4), "document_hidden": 4, "head_width": 6}}
    learner = PPOConfig(unroll=5, minibatches=2, warm_up=50, anneal_steps=600)
    phases = phases_of(240, learner)
    settings = tiny_settings(phases=phases, team_reward=0.5, stages=("s1",), **txt2pi)
    learn(settings, tmp_path / "whole")
    folder, saves = tmp_path / "killed", count()
    killed_run(settings, folder, lambda position: next(saves) == 2)
    resume(folder)
    assert torch.equal(weights_of(folder, "s1"), weights_of(tmp_path / "whole", "s1"))


def test_a_finished_run_resumes_to_nothing(finished):
    before = {path: path.read_bytes() for path in finished.rglob("*.safetensors")}
    resume(finished)
    assert before == {path: path.read_bytes() for path in finished.rglob("*.safetensors")}


def test_the_best_weights_on_train_are_carried_over(tmp_path, monkeypatch):
    """The first evaluation of s1 on `train` is made the best; s2 starts from those weights, whatever `eval` says."""
    seen, started = [], {}
    evaluate = evaluation.play_set

    def praise(self, name, games, *more, **options):
        result = evaluate(self, name, games, *more, **options)
        if self.segment.stage.name == "s1" and games == 6:
            if name == "train":
                seen.append(pack_learners(self.learners))
            result.won[:] = len(seen) == 1 if name == "train" else len(seen) > 1
        return result

    def start(self):
        started[self.segment.stage.name] = pack_learners(self.learners)
        self.source.start(0)

    monkeypatch.setattr(evaluation, "play_set", praise)
    monkeypatch.setattr(StageSession, "start", start)
    learn(tiny_settings(stages=("s1", "s2")), tmp_path / "run")
    assert len(seen) == 3
    assert all(torch.equal(started["s2"][name], seen[0][name]) for name in seen[0])
    assert any("optimizer" in name for name in seen[0])
    assert not all(torch.equal(seen[0][name], seen[2][name]) for name in seen[0])
    assert read_json(tmp_path / "run" / "s1" / "state.json")["steps"] == 90


def test_several_seeds_have_folders_of_their_own(tmp_path):
    folder = tmp_path / "run"
    changes = {"every": None, "phases": phases_of(60), "final_sets": ("train",)}
    learn(tiny_settings(stages=("s1",), seeds=(3, 5), **changes), folder)
    own = {"metrics.jsonl", "checkpoint.safetensors"}
    assert {path.name for path in folder.iterdir()} == FOLDER_OF_A_RUN - own | {"seed_3", "seed_5"}
    three, five = (mg.load_team(folder, seed=k).policies[0] for k in (3, 5))
    assert not all(torch.equal(p, q) for p, q in zip(three.parameters(), five.parameters(), strict=True))
    for absent in ({"seed": 4}, {"stage": "s5"}):
        with pytest.raises(ConfigurationError):
            mg.load_team(folder, **absent)


@pytest.mark.parametrize(
    ("rule", "reached"),
    [
        (Promotion(steps=100), [False, False, True, True]),
        (Promotion(win_rate=0.5, window=10), [False, True, False, True]),
        (Promotion(steps=100, win_rate=0.5, window=10), [False, True, True, True]),
        (Promotion(steps=100, win_rate=0.5, window=10, rule="all"), [False, False, False, True]),
    ],
)
def test_promotion_rules(rule, reached):
    situations = [(99, 9, 1.0), (99, 10, 0.5), (100, 10, 0.4), (100, 10, 0.5)]
    assert [rule.reached(*situation, minutes=1e9) for situation in situations] == reached


def test_wins_and_reading_promote_nothing_while_an_option_is_still_to_change():
    rule = Promotion(win_rate=0.5, window=10, reading=0.3)
    assert not rule.reached(100, 10, 0.4, 1.0)
    assert not rule.reached(100, 10, 0.4, 1.0, 0.29)
    assert rule.reached(100, 10, 0.4, 1.0, 0.3)
    assert not rule.reached(100, 10, 0.9, 1.0, 0.9, ramping=True)
    assert Promotion(steps=100).reached(100, 10, 0.9, 1.0, ramping=True)


def test_time_ends_a_stage_whatever_the_rule():
    rule = Promotion(steps=100, win_rate=0.9, rule="all", minutes=2.0)
    assert not rule.reached(0, 0, 0.0, 1.99)
    assert rule.reached(0, 0, 0.0, 2.0)


def test_bad_options_come_to_light_before_anything_is_written(tmp_path):
    with pytest.raises(MagroundingError):
        learn(tiny_settings(env_options={"size": 2}), tmp_path / "run")
    endless = phases_of(90, PPOConfig(beta2=1.0))  # Adam divides by 1 − beta2
    with pytest.raises(ConfigurationError):
        learn(tiny_settings(phases=endless), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_settings_survive_their_file(tmp_path):
    settings = tiny_settings(seeds=(1, 2))
    write_json(tmp_path / "config.json", settings.as_dict())
    assert read_config(tmp_path) == settings
    for text in ("{", "[]", '{"env": "ma_rtfm"}'):
        (tmp_path / "config.json").write_text(text)
        with pytest.raises(CheckpointError):
            read_config(tmp_path)
    with pytest.raises(CheckpointError):
        read_config(tmp_path / "nowhere")


def test_no_time_is_estimated_before_the_speed_of_every_algorithm_is_known(tmp_path):
    shown = []

    class Shown(Display):
        def show(self, title, part, numbers, row=""):
            shown.append((title.split()[-1], numbers[0] != f"{duration(None)} left"))

    phases = phases_of(300, IMITATION, LEARNER)  # 30 steps an update
    settings = tiny_settings(stages=("s1", "s2"), phases=phases, every=None, final_sets=("eval",))
    learn(settings, tmp_path, display=Shown())
    known = [know for _, know in shown]
    assert [title for title, _ in shown] == 2 * (10 * ["imitate"] + 10 * ["reinforce"])
    assert known == 19 * [False] + 21 * [True]


def test_a_trained_run_ends_with_its_results_and_what_can_be_typed_next(finished):
    text = ended(RunFolder(finished), read_results(finished))
    assert re.findall(r"^\| (s\d) \|", text, re.MULTILINE) == ["s1", "s3"]
    commands = [shlex.split(command) for command in re.findall(r"magrounding (.+)", text)]
    assert [command[0] for command in commands] == ["watch", "evaluate", "serve"]
    assert all(command[2].removeprefix("mine=run:") == str(finished) for command in commands)


@pytest.mark.parametrize("width", [60, 80, 110, 139, 140, 200])
def test_the_time_left_fits_a_terminal_of_any_width(width):
    out = io.StringIO()
    with Display(Console(file=out, width=width, force_terminal=True)) as display:
        numbers = ("8 h 00 min left", "wins 25.0%", "100,000 of 1,000,000 steps", "12,321 steps/s")
        display.show("seed 7 simple_stationary", 0.5, numbers)
        display._progress.refresh()
    line = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "\n", out.getvalue())
    assert "50%  8 h 00 min left" in line
    assert ("12,321 steps/s" in line) == (width > 80)

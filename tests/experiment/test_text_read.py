"""What is kept of a run and of an evaluation says which text was read, by its content and not only by its place."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from magrounding.cli.evaluate import Arguments, evaluate_runs
from magrounding.envs.messenger.manual import find_corpus
from magrounding.errors import CheckpointError, DataNotFound
from magrounding.experiment.reports.zero_shot import to_json, zero_shot_report
from tests.envs.people_corpus import small_corpus, write_corpus
from tests.experiment.tiny_runs import TINY, learn, phases_of, resume

BRIEF = replace(
    TINY,
    phases=phases_of(60),
    network={"similarity": 2, "hidden": 8, "top": 8},
    evaluation=replace(TINY.evaluation, every=None, final_sets=("test",), report_games=4, selection_set="val"),
)


@pytest.fixture
def corpus(tmp_path):
    return write_corpus(tmp_path / "people", small_corpus(whole=True))


def test_a_run_says_what_it_read_and_does_not_go_on_with_other_sentences(tmp_path, corpus):
    source = f"corpus {corpus}, sha256 {find_corpus(corpus).digest}"
    settings = replace(BRIEF, env="messenger", stages=("s1",), env_options={"corpus": corpus})
    run = tmp_path / "run"
    learn(settings, run)
    assert json.loads((run / "config.json").read_text())["text"] == source
    arguments = Arguments(run=(str(run),), splits="test", episodes=4, play="greedy", paths=("env.corpus=null",))
    results = evaluate_runs(replace(arguments, quiet=True))
    assert f"| {source} |" in zero_shot_report(results, "picture.png", "command")  # that it was trained with
    assert to_json(results, "command", {})["text"] == "our templates"
    data = small_corpus(whole=True)
    data["val"]["mage"]["enemy"]["unknown"] += ["So what?"]
    write_corpus(Path(corpus), data)
    with pytest.raises(CheckpointError):
        resume(run)


def test_an_evaluation_on_another_text_says_so_and_a_missing_one_is_a_sentence(corpus, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = Arguments(pretrained=("messenger-s2",), splits="test", episodes=2, play="greedy", quiet=True)
    results = evaluate_runs(replace(arguments, paths=(f"env.corpus={corpus}",)))
    assert results.text == f"corpus {corpus}, sha256 {find_corpus(corpus).digest}"
    assert f"Text: {results.text}." in zero_shot_report(results, "picture.png", "command")
    with pytest.raises(DataNotFound):
        evaluate_runs(replace(arguments, paths=("env.corpus=nowhere",)))

"""The overlap of sentences with those of training: runs of words, without names and punctuation; facts by it."""

from functools import partial

import numpy as np
import pytest
import torch

from magrounding.envs.make import make_vec
from magrounding.envs.rtfm.sentences import find_sentences, our_sentences
from magrounding.errors import ConfigurationError
from magrounding.experiment.config import make_config
from magrounding.extensions.running_text import segmenting
from magrounding.extensions.running_text.edges_learning import learn_edges
from magrounding.extensions.running_text.segmenting import ENGLISH_FILE, renderings_of, shared_pieces
from magrounding.extensions.running_text.shared_runs import SharedRuns, read_by_overlap
from magrounding.teams.evaluate import evaluate
from magrounding.teams.loading import load_team

WORDS = ("<pad>", ",", ".", "serve", "the", "not", "bat", "imp", "wolf", "alliance", "enclave")
LETTERS = np.array([0, 0, 0, 0, 0, 0, 1, 1, 1, 2, 2])


def ids(text):
    return np.array([WORDS.index(word) for word in text.split()])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("bat , imp serve the alliance .", 2),
        ("not the enclave serve wolf", 1),
        ("not the", 1),
        ("the , the enclave", 2),
        ("not", 0),
        ("bat alliance", 0),
    ],
)
def test_runs_count_words_between_names_of_the_same_class(text, words):
    runs = SharedRuns([ids("wolf serve the enclave"), ids("serve the the")], WORDS, LETTERS)
    assert runs.longest(ids(text), WORDS, LETTERS) == words


def test_facts_by_overlap_are_all_facts_and_training_is_all_known(monkeypatch):
    monkeypatch.setattr(segmenting, "GAMES", 128)
    monkeypatch.setattr(segmenting, "ROUNDS", 8)
    settings = make_config("ma_rtfm", "relread", 2, "quick", ("s6",), (0,))
    learnt = renderings_of(settings.resolve().stages["s6"], 0)
    edges = learn_edges(settings.resolve().stages["s6"].games.spec, learnt, steps=20)
    monkeypatch.setattr(segmenting, "GAMES", 24)
    found = read_by_overlap(settings.resolve().stages["s6"], edges, learnt)
    for name, reading in found.items():
        assert sum(count for count, _ in reading.classes.values()) == 17 * 24
        right = sum(count * part for count, part in reading.classes.values()) / (17 * 24)
        options = {**settings.resolve().stages["s6"].sets[name].options, "layout": "statements"}
        vec = make_vec("ma_rtfm", 24, **options)
        pieces = edges(torch.from_numpy(vec.reset(seed=2**40)[0]["manual"])).ids.numpy()
        read = vec.fact_accuracy(partial(shared_pieces, pieces))
        assert read - 0.1 < right < read + 1e-9, "all words of a team's name count, not most"
    assert found["train"].longest > found["eval_paraphrase"].longest
    assert set(found["eval_construction"].classes) >= {"0 to 3"}


def test_english_is_of_training_alone_and_has_no_held_out_sentence():
    english = find_sentences(ENGLISH_FILE, language=True)
    assert len(english.templates) >= 300
    assert {template.split for template in english.templates} == {"train"}
    assert not {"respectively", "exception"} & {template.construction for template in english.templates}
    held_out = {template.text for template in our_sentences(True).templates if template.split != "train"}
    assert not held_out & {template.text for template in english.templates}


def test_english_is_written_with_the_templates_of_a_world(monkeypatch):
    monkeypatch.setattr(segmenting, "GAMES", 16)
    monkeypatch.setattr(segmenting, "ROUNDS", 1)
    settings = make_config("ma_rtfm", "relread", 2, "quick", ("s6",), (0,))
    without, learnt = (renderings_of(settings.resolve().stages["s6"], assume=assume) for assume in ((), ("english",)))
    words = settings.resolve().stages["s6"].games.spec.words
    assert without.words == words == learnt.words[: len(words)] < learnt.words
    assert len(learnt.reworded) == len(without.reworded) + 1
    for rows, own in zip(learnt.rows, learnt.reworded[-1], strict=True):
        names = without.places > 0
        assert {i for i in rows.ravel() if names[i]} == {i for i in own.ravel() if i < len(words) and names[i]}
    messenger = make_config("messenger", preset="quick")
    with pytest.raises(ConfigurationError):
        renderings_of(messenger.resolve().stages["s2"], assume=("english",))


def test_the_shipped_team_reads_a_file_that_it_never_saw():
    team = load_team("pretrained:ma_rtfm-s6-2agents")
    options = {"stage": "s6", "agents": 2, "templates": "example:sentences.json", "max_cycles": 1}
    assert evaluate(team, "ma_rtfm", options, 64).fact_accuracy > 0.9

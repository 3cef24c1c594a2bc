"""Words that share a fact are found in sentences that hold several, or deny some; then relread reads them as rows."""

from functools import partial
from itertools import permutations

import numpy as np
import pytest
import torch

import magrounding as mg
from magrounding.agents.building import make_policy
from magrounding.agents.language import Words
from magrounding.experiment.config import make_config
from magrounding.extensions.running_text import edges_kernels, segmenting
from magrounding.extensions.running_text.edges import Edges
from magrounding.extensions.running_text.edges_kernels import groups_of
from magrounding.extensions.running_text.edges_learning import learn_edges
from magrounding.extensions.running_text.segmenting import learn_segments_of, shared_pieces
from magrounding.teams.evaluate import evaluate
from magrounding.teams.loading import load_team


@pytest.fixture(scope="module")
def edges():
    """A reader of S6 that has learnt for some seconds, without any look at facts."""
    with pytest.MonkeyPatch.context() as patch:  # undone where learning fails, too
        patch.setattr(segmenting, "GAMES", 128)
        patch.setattr(segmenting, "ROUNDS", 2)
        patch.setattr(segmenting, "learn_edges", partial(learn_edges, steps=30))
        patch.setattr("magrounding.envs.rtfm.world.RTFMWorld.fact_table", None)
        plan = make_config("ma_rtfm", "relread", 2, "quick", ("s6",), (0,)).resolve()
        return learn_segments_of(Edges, plan.stages["s6"])


def games(rows=24, seed=10**6, **options):
    vec = mg.make_vec("ma_rtfm", rows, copy=True, agents=2, **{"stage": "s6", **options})
    return vec, vec.reset(seed=seed)[0]["manual"]


def accuracy(edges, **options):
    vec, manual = games(**options)
    return vec.fact_accuracy(partial(shared_pieces, edges(torch.from_numpy(manual)).ids.numpy()))


def test_seconds_of_learning_put_most_facts_together(edges):
    assert accuracy(edges, layout="statements", constructions="none") > 0.95
    assert accuracy(edges) > 0.6
    assert accuracy(edges, split="eval_new", constructions="none") > 0.9


def test_kernels_compute_what_was_learnt(edges):
    _, manual = games(4)
    scorer, table = edges.scorer(), edges.embeddings()
    for text in manual:
        ids = text[text != 0].astype(np.int64)
        place = np.flatnonzero(edges.letters.numpy()[ids])
        words, word = np.unique(ids[place], return_inverse=True)
        tokens = Words(torch.from_numpy(ids).unsqueeze(0), torch.tensor([len(ids)]))
        states = edges.encoder(lambda ids: table[ids], tokens)[0]
        wanted = edges.scores(states, *(torch.from_numpy(each).unsqueeze(0) for each in (place, word)), len(words))[0]
        letters = scorer.letters[words]
        wanted = wanted.double().numpy() * scorer.related[letters][:, letters] * (1 - np.eye(len(words)))
        pieces = edges_kernels.divide(wanted, letters, scorer.usual)
        found = groups_of(text, scorer)
        np.testing.assert_array_equal(*(np.equal.outer(each, each) for each in (found[text != 0][place], pieces[word])))


def test_the_best_division_is_found(edges):
    rng = np.random.default_rng(0)
    usual, letters = np.array([[1, 1], [1, 1], [1, 1], [1, 1]]), np.array([1, 2] * 4)
    for _ in range(20):
        scores = rng.normal(size=(8, 8))
        scores = scores + scores.T
        best = max(sum(scores[2 * a, 2 * b + 1] for a, b in enumerate(way)) for way in permutations(range(4)))
        piece = edges_kernels.divide(scores, letters, usual)
        found = [(u, v) for u in range(8) for v in range(u) if piece[u] == piece[v]]
        assert len(found) == 4
        assert sum(scores[pair] for pair in found) == pytest.approx(best)
    odd = np.where(np.add.outer([0, 0, 1], -np.array([0, 0, 1])) == 0, 1.0, -1.0)
    piece = edges_kernels.divide(odd, np.array([1, 1, 1]), usual)  # not as many words as usual
    assert piece[0] == piece[1] != piece[2]


def test_rows_that_have_the_words_of_a_statement_are_the_pieces(edges):
    scorer = edges.scorer()._replace(out=np.zeros(len(edges.scorer().out), np.float32))  # that reads nothing
    for split in ("eval", "eval_paraphrase"):
        _, manual = games(16, layout="statements", constructions="none", split=split)
        known = edges.letters.numpy()
        for text in manual.astype(np.int64):
            found = groups_of(text, scorer)
            rows = np.cumsum((known[text] > 0).any(1)) * (known[text] > 0).any(1)
            np.testing.assert_array_equal(found, np.where(known[text] > 0, rows[:, None], 0))
            text[0, :] = text[1, :]  # the words of one stand in two rows, and others are missing
            with pytest.raises(AssertionError):
                np.testing.assert_array_equal(groups_of(text, scorer), found)


def test_relread_reads_facts_whose_words_stand_in_several_rows(edges):
    vec, manual = games(layout="merged")
    policy = make_policy("relread", vec.spec, segments="edges")
    policy.segments.load_state_dict(edges.state_dict())
    text, goal = torch.from_numpy(manual), torch.from_numpy(vec.world.observation["goal"].copy())
    assert (policy.segments(text).row_of.sum(2) > 1).any()
    encoding = policy.encode_text(text, goal)

    def relate(subjects, names):
        return policy.relate_words(encoding, *map(torch.from_numpy, (subjects, names.astype(int)))).detach().numpy()

    assert vec.fact_accuracy(relate) == accuracy(edges, layout="merged")


def test_evaluations_say_how_many_facts_were_read():
    team, options = load_team("pretrained:ma_rtfm-s5-2agents"), {"agents": 2, "max_cycles": 1}
    of_rows = evaluate(team, "ma_rtfm", {**options, "stage": "s5"}, 32)
    assert of_rows.summary()["fact_accuracy"] == 1
    of_text = evaluate(team, "ma_rtfm", {**options, "stage": "s5", "layout": "paragraph"}, 32)
    assert of_text.fact_accuracy < 0.5
    shuffled = evaluate(team, "ma_rtfm", {**options, "stage": "s5"}, 4, manual="of another game")
    assert "fact_accuracy" not in shuffled.summary()

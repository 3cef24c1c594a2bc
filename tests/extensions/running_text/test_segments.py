"""Running text is cut into the statements that it was made of; behind that, relread reads what it read of rows."""

from itertools import product

import numpy as np
import pytest
import torch

import magrounding as mg
from magrounding.agents.building import make_policy
from magrounding.agents.document_policy import Inputs
from magrounding.agents.policy import ATTENTION
from magrounding.agents.relread.statements import make_statements
from magrounding.extensions.running_text import segments_kernels
from magrounding.extensions.running_text.segmenting import _shown, places_shown
from magrounding.extensions.running_text.segments import SEGMENTS, Segmenter
from magrounding.extensions.running_text.segments_learning import exactness, learn_segments, punctuation_of, render
from magrounding.teams.loading import load_team
from tests.agents.samples import documents_of, seen_by

SETS = ("train", "eval", "eval_new", "eval_paraphrase")


def games(split="train", rows=256, seed=0, **options):
    vec = mg.make_vec("ma_rtfm", rows, copy=True, stage="s5", agents=2, split=split, **options)
    return vec, vec.reset(seed=seed)[0]


@pytest.fixture(scope="module")
def manuals():
    """Split → held-out manuals, one statement a row."""
    return {split: _shown(*games(split, 64, seed=10**6), "manual") for split in SETS[1:]}


@pytest.fixture(scope="module")
def segmenter():
    seen = [games(split) for split in SETS]
    nothing = np.zeros(seen[0][0].spec.vocabulary_size, np.bool_)
    maps = [(vec.spec, _shown(vec, observation, vec.spec.grid.name)) for vec, observation in seen]
    shown = sum(places_shown(spec, each, nothing)[0] for spec, each in maps)
    places = np.where(shown.any(1), shown.argmax(1) + 1, 0)
    return learn_segments(seen[0][0].spec, _shown(*seen[0], "manual"), places, steps=60)


def changed(segmenter, **tensors):
    """A copy with some of its weights set to a number."""
    spec = games(rows=1)[0].spec
    copy = Segmenter(spec)
    copy.load_state_dict(segmenter.state_dict())
    for name, value in tensors.items():
        dict(copy.named_parameters())[name.replace("_", ".")].fill_(value)
    return copy


def test_held_out_shown_and_names_are_divided_exactly(segmenter, manuals):
    spec = games(rows=1)[0].spec
    for split in ("eval", "eval_new"):
        assert min(exactness(spec, segmenter, manuals[split]).values()) == 1
        marks, rng = punctuation_of(spec), np.random.default_rng(0)
        for manual in manuals[split][:50]:
            words, ends = render(manual, rng, marks, 7, stream=True)
            np.testing.assert_array_equal(segmenter.ends(words[None, None])[0, 0], ends)
    assert exactness(spec, segmenter, manuals["eval_paraphrase"])["stream"] > 0.9


def test_logits_are_those_of_the_network(segmenter):
    words = np.random.default_rng(0).integers(1, segmenter.size, 40)
    states = segmenter.states(segmenter.tokens[torch.from_numpy(words)][None], torch.tensor([40]))
    found = segments_kernels.boundary_logits(words, segmenter.cutter())
    torch.testing.assert_close(torch.from_numpy(found), segmenter.head(states)[0, :, 0], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("statements", [0, 1, 3, 8])
def test_the_cuts_are_the_best_of_all_of_as_many_statements(segmenter, statements):
    segmenter = changed(segmenter, statements=statements)
    rng, cutter, count = np.random.default_rng(1), segmenter.cutter(), 8
    for _ in range(20):
        words = rng.integers(1, segmenter.size, count)
        words[::2] = rng.choice(np.flatnonzero(cutter.letters), count // 2)
        logits = segments_kernels.boundary_logits(words, cutter)

        def worth(cuts, words=words, logits=logits):
            total, first = 0.0, 0
            for t in range(count):
                if t == count - 1 or cuts[t]:
                    letters = [letter for letter in cutter.letters[words[first : t + 1]] if letter]
                    code = int("".join(map(str, letters)) or "0", cutter.base)
                    total += segments_kernels.score_of(code, len(letters), cutter.shapes, cutter.scores)
                    total, first = total + (logits[t] if t < count - 1 else 0), t + 1
            return total

        found = segmenter.ends(words[None, None])[0, 0]
        possible = [
            (*cuts, True)
            for cuts in product((False, True), repeat=count - 1)
            if sum(cuts) + 1 == statements or not statements
        ]
        assert tuple(found) in possible
        assert worth(found) == pytest.approx(max(map(worth, possible)))


def test_rows_are_statements_where_there_are_as_many_and_cut_where_there_are_fewer(segmenter, manuals):
    assert int(segmenter.statements) == 7
    rows = manuals["eval"][:1].copy()
    shuffled = np.random.default_rng(0).integers(1, segmenter.size, rows.shape) * (rows > 0)
    ends = segmenter.ends(shuffled)
    assert (ends.sum(2) == 1).all()
    merged = shuffled[0].reshape(1, 1, -1)
    assert segmenter.ends(merged).sum() == 7
    assert segmenter.ends(merged[..., :5]).sum() == (merged[..., :5] > 0).sum() <= 5  # fewer words than statements
    twice = np.concatenate((shuffled, shuffled), 1)
    assert segmenter.ends(twice).any(2).all()  # more rows: any number of pieces


def test_stops_cut_behind_each_full_stop_and_nowhere_else():
    spec = games(rows=1)[0].spec
    one, two, stop, why = 40, 41, spec.words.index("."), spec.words.index("?")
    manual = torch.tensor([[[one, why, two, stop, two, 0], [stop, one, one, 0, 0, 0], [0] * 6], [[one] + [0] * 5] * 3])
    pieces = make_statements("stops", spec)(manual)
    assert pieces.ids[0].tolist() == [[one, why, two, stop], [two, 0, 0, 0], [stop, 0, 0, 0], [one, one, 0, 0]]
    assert pieces.row_of.int().argmax(2).tolist() == [[0, 0, 1, 1], [0, 1, 2, 0]]
    assert pieces.row_of.sum(2).tolist() == [[1, 1, 1, 1], [1, 1, 1, 0]]


@pytest.fixture(scope="module")
def teams(segmenter):
    """Way to find statements → the first network of the shipped team, and behind EnDi, with it."""
    team, found = load_team("pretrained:ma_rtfm-s5-2agents"), {}
    for kind in SEGMENTS:
        policy = make_policy("relread", team.spec, segments=kind).eval()
        policy.load_state_dict(team.policies[0].state_dict(), strict=False)
        if kind == "learnt":
            policy.segments.load_state_dict(segmenter.state_dict())
        found[kind] = policy
    return found


def act(policy, layout, rows=24):
    vec, observation = games("eval", rows, layout=layout)
    manual, goal = documents_of(observation)
    with torch.no_grad():
        text = policy.encode_text(manual, goal)
        return policy.respond(Inputs(seen_by(0, observation, vec.spec), text, torch.arange(rows)))


@pytest.mark.parametrize(
    ("kind", "layouts"),
    [("stops", ("statements", "merged", "paragraph")), ("learnt", ("statements", "merged", "paragraph", "stream"))],
)
def test_a_trained_network_decides_as_if_it_read_rows(teams, kind, layouts):
    wanted = act(teams["rows"], "statements")
    for layout in layouts:
        found = act(teams[kind], layout)
        if layout != "stream":
            torch.testing.assert_close(found.logits, wanted.logits, rtol=1e-3, atol=1e-3)
        assert (found.logits.argmax(1) == wanted.logits.argmax(1)).float().mean() > 0.9  # a stream has no commas
        told = found.aux[ATTENTION]()
        torch.testing.assert_close(told.sum(1), torch.ones(24))
        if layout == "statements":
            torch.testing.assert_close(told, wanted.aux[ATTENTION](), rtol=1e-3, atol=1e-4)
    read = act(teams["rows"], layouts[-1]).logits
    assert (read.argmax(1) != wanted.logits.argmax(1)).any()

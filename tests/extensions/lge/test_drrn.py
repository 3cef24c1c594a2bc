"""DRRN: its size, what it reads, that padding and company change no code, and pieces that travel with weights."""

import numpy as np
import pytest
import torch
from torch import nn

import magrounding as mg
from magrounding.agents.building import build_policy, make_policy
from magrounding.agents.policy import Batch, Reading
from magrounding.agents.weights import fit_weights
from magrounding.errors import CheckpointError, ConfigurationError
from magrounding.extensions.lge.drrn import pieces as pieces_module
from magrounding.extensions.lge.drrn.pieces import (
    FIRST,
    SPACE,
    UNKNOWN,
    Pieces,
    train_pieces,
)
from magrounding.extensions.lge.drrn.prefix_tree import TreeGRU, grow_tree
from magrounding.spec import CHOICES
from tests.many_choices import SPEC
from tests.training import order_game, text_games

WORDS = {"vocabulary": "words"}
SMALL = {**WORDS, "embedding": 6, "hidden": 5}


def size(policy):
    return sum(parameter.numel() for parameter in policy.parameters())


def flat(texts):
    return np.array([x for text in texts for x in text], np.int64), np.cumsum([0, *map(len, texts)])


def random_texts(rng, count, words=4, longest=9):
    return [rng.integers(0, words, rng.integers(0, longest)).tolist() for _ in range(count)]


def test_it_has_as_many_parameters_as_the_paper_on_scienceworld():
    spec = mg.ENVS["scienceworld"].describe()
    policy = make_policy("drrn", spec)
    assert size(policy) == 1_486_081
    assert [size(part) for part in (policy.words, *policy.texts, policy.hidden, policy.score)] == [
        1_024_000,
        *[99_072] * 4,
        65_664,
        129,
    ]
    assert policy.reads == {
        "observation": ("task", "observation"),
        "look": ("look",),
        "inventory": ("inventory",),
        CHOICES: (CHOICES,),
    }


def test_what_is_read_follows_from_the_world():
    assert make_policy("drrn", SPEC, **WORDS).reads == {"observation": ("task", "observation"), CHOICES: (CHOICES,)}
    alfworld = make_policy("drrn", mg.ENVS["alfworld"].describe(), **WORDS)
    assert alfworld.reads == {"observation": ("goal", "feedback"), "history": ("history",), CHOICES: (CHOICES,)}
    own = make_policy("drrn", order_game.SPEC, readers={"all": ["observation", "task"]}, **SMALL)
    assert own.reads == {"all": ("observation", "task"), CHOICES: (CHOICES,)}
    with pytest.raises(ConfigurationError):
        make_policy("drrn", order_game.SPEC, readers={"x": ["grid"]}, **SMALL)
    with pytest.raises(ConfigurationError):
        make_policy("drrn", order_game.SPEC, readers={"x": "grid"}, **SMALL)
    with pytest.raises(ConfigurationError):
        make_policy("drrn", mg.ENVS["rtfm"].describe())


@pytest.mark.parametrize("hidden", [1, 6])
def test_a_tree_has_the_states_and_gradients_of_each_text_alone(hidden):
    rng = np.random.default_rng(0)
    texts = [[], [1], [1, 2], [1, 2, 3], *random_texts(rng, 60)]
    torch.manual_seed(0)
    words, gru = nn.Embedding(4, 5), TreeGRU(5, hidden)
    learnt = [*gru.parameters(), words.weight]
    tree = grow_tree(*flat(texts))
    beginnings = {tuple(text[:n]) for text in texts for n in range(len(text) + 1)}
    assert len(tree.token) == len(beginnings) < sum(map(len, texts))
    # A gradient for some texts only: the others' beginnings are left out on the way back.
    weight = torch.randn(len(texts), hidden) * torch.from_numpy(rng.integers(0, 2, (len(texts), 1)))
    states = gru.read(words, *flat(texts))
    ours = torch.autograd.grad((states * weight).sum(), learnt)
    alone = torch.stack(
        [gru(words(torch.tensor(text))[None])[0][0, -1] if text else torch.zeros(hidden) for text in texts]
    )
    theirs = torch.autograd.grad((alone * weight).sum(), learnt)
    torch.testing.assert_close(states, alone)
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)
    with torch.no_grad():
        torch.testing.assert_close(gru.read(words, *flat(texts)), states)
    nothing = torch.autograd.grad((gru.read(words, *flat(texts)) * 0).sum(), learnt)
    assert not any(gradient.any() for gradient in nothing)


def batch_of(policy, spec, shape=(2, 3), seed=0):
    """Random texts, each of which has parts; at least two choices on offer."""
    rng = np.random.default_rng(seed)
    most = spec[CHOICES].shape[0]
    mask = np.arange(most) < rng.integers(2, most, (*shape, 1))
    texts = {}
    for name, fields in policy.reads.items():
        rows = {f: torch.from_numpy(rng.integers(0, 9, (6, spec[f].shape[-1]))) for f in fields}
        index = torch.from_numpy(rng.integers(0, 6, (*shape, most) if name == CHOICES else shape))
        texts[name] = Reading(policy.encode(name, rows), index)
    nothing = torch.zeros(shape, dtype=torch.int64)
    return Batch({"action_mask": torch.from_numpy(mask.astype(np.int8))}, texts, None, nothing.bool(), nothing)


def test_values_are_those_of_one_layer_over_all_states_together(monkeypatch):
    monkeypatch.setattr("magrounding.extensions.lge.drrn.choice_values._PAIRS", 7)
    policy = build_policy("drrn", order_game.SPEC, SMALL, 0)
    states = {}
    read = policy.read
    monkeypatch.setattr(policy, "read", lambda name, ids: states.setdefault(name, read(name, ids)))
    batch = batch_of(policy, order_game.SPEC)
    output = policy(batch)
    for t, b, c in np.ndindex(*batch.texts[CHOICES].index.shape):
        where = {name: (t, b, c) if name == CHOICES else (t, b) for name in policy.reads}
        joined = torch.cat([states[name][batch.texts[name].index[at]] for name, at in where.items()])
        q = policy.score(torch.relu(policy.hidden(joined)))
        if batch.observation["action_mask"][t, b, c]:
            torch.testing.assert_close(output.logits[t, b, c], q[0])
        else:
            assert output.logits[t, b, c] == torch.finfo(torch.float32).min
    torch.testing.assert_close(output.value, output.logits.amax(-1))


PIECES = Pieces({SPACE: -3.0, f"{SPACE}key": -2.0, "a": -4.0, "b": -4.0, "ab": -5.0, f"{SPACE}key{SPACE}ab": -4.5})


def test_pieces_divide_a_text_in_the_most_probable_way():
    assert PIECES.divide("key ab") == [f"{SPACE}key{SPACE}ab"]
    assert PIECES.divide("ab key") == [SPACE, "ab", f"{SPACE}key"]
    assert PIECES.divide("key zb") == [f"{SPACE}key", SPACE, "z", "b"]
    assert PIECES.tokens("zab") == [FIRST, UNKNOWN, FIRST + 4]
    assert PIECES.tokens("") == []
    again = Pieces.from_json(PIECES.to_json(), "there")
    assert again.scores == PIECES.scores


@pytest.mark.parametrize("text", ["", "[]", '{"pieces": 3}', '{"pieces": []}', '{"pieces": [["a", NaN]]}'])
def test_what_is_no_list_of_pieces_is_refused(tmp_path, text):
    (tmp_path / "pieces.json").write_text(text)
    with pytest.raises((CheckpointError, ConfigurationError)):
        make_policy("drrn", order_game.SPEC, vocabulary=str(tmp_path / "pieces.json"))


def test_pieces_travel_with_the_weights(tmp_path):
    file = tmp_path / "pieces.json"
    file.write_text(PIECES.to_json())
    options = {"vocabulary": str(file), "pieces": 12, "embedding": 4, "hidden": 3}
    trained = build_policy("drrn", order_game.SPEC, options, 0)
    weights = {name: tensor.clone() for name, tensor in trained.state_dict().items()}
    ids = {"inventory": torch.tensor([[order_game.KEY, order_game.DOOR]])}
    file.unlink()
    loaded = build_policy("drrn", order_game.SPEC, options, 1)
    with pytest.raises(CheckpointError):
        loaded.read("inventory", ids)
    fit_weights(loaded, weights, "there")
    assert torch.equal(loaded.read("inventory", ids), trained.read("inventory", ids))
    file.write_text(Pieces({SPACE: -1.0, "x": -2.0}).to_json())
    other = build_policy("drrn", order_game.SPEC, options, 1)
    fit_weights(other, weights, "there")
    assert torch.equal(other.read("inventory", ids), trained.read("inventory", ids)), "those of the weights win"
    with pytest.raises(CheckpointError):
        fit_weights(make_policy("drrn", order_game.SPEC, **{**SMALL, "embedding": 4, "hidden": 3}), weights, "there")
    file.write_text(PIECES.to_json())
    with pytest.raises(ConfigurationError):
        make_policy("drrn", order_game.SPEC, vocabulary=str(file), pieces=5)
    with pytest.raises(ConfigurationError):
        make_policy("drrn", text_games.spec_of(), vocabulary=str(file))


@pytest.mark.parametrize("across_words", [False, True])
def test_pieces_are_those_of_sentencepiece(across_words):
    sentencepiece = pytest.importorskip("sentencepiece")
    rng = np.random.default_rng(0)
    nouns, verbs = "key door lamp window thermometer metal pot substance".split(), "take open pour move focus".split()
    texts = [f"{rng.choice(verbs)} the {rng.choice(nouns)} in {rng.choice(nouns)} {i}" for i in range(400)]
    made = train_pieces(texts, 300, across_words=across_words)
    assert made.scores == train_pieces(texts, 300, across_words=across_words).scores
    assert 50 < len(made) <= 300
    assert set(pieces_module._LETTERS) <= set(made.scores)
    assert any(SPACE in piece[1:] for piece in made.scores) == across_words
    own = sentencepiece.SentencePieceProcessor(
        model_proto=pieces_module._train(sentencepiece, texts, 300, across_words)
    )
    for text in (*texts[:50], "a key never seen", "zinc 77"):
        assert made.divide(text) == own.encode(text, out_type=str)
        assert UNKNOWN not in made.tokens(text)

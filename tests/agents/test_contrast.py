"""Grounding by contrast: what is on the board is what the manual speaks of."""

import numpy as np
import torch

import magrounding as mg
from magrounding.agents.building import make_policy
from magrounding.agents.policy import Batch, Reading
from magrounding.agents.relread.network import Relread
from magrounding.envs.messenger.arrays import ENTITIES, KIND
from magrounding.envs.messenger.manual import CELLS, our_corpus
from magrounding.envs.messenger.sentences import triples
from tests.agents.samples import documents_of, seen_by


def boards(rows=32, seed=0, **options):
    """Spec, boards and texts of games of MESSENGER that have just begun."""
    vec = mg.make_vec("messenger", rows, copy=True, **{"stage": "s1", **options})
    observation, _ = vec.reset(seed=seed)
    return vec, seen_by(0, observation, vec.spec), documents_of(observation)


def reader(spec, **options):
    torch.manual_seed(0)
    policy = make_policy("relread", spec, **{"similarity": 16, "meaning": 4, **options})
    assert isinstance(policy, Relread)
    return policy


def test_the_loss_is_that_of_a_slow_loop():
    vec, board, texts = boards(rows=5, stage="s3")
    policy = reader(vec.spec)
    text = policy.encode_text(*texts)
    symbols, words = policy.reader.symbols.weight, policy.reader.words.weight
    score = torch.zeros(5, 5)
    for i in range(5):
        for j in range(5):
            for symbol in board["grid"][i].flatten().long():
                if 2 <= symbol <= 13:  # an entity, once for each time it is there
                    query, fits = symbols[symbol] / symbols[symbol].norm(), []
                    for line in texts[0][j]:
                        key = words[sorted(set(line[line > 0].tolist()))].sum(0)
                        fits.append(8 * query @ key / key.norm())
                    score[i, j] += torch.stack(fits).logsumexp(0)
    expected = sum(-s.log_softmax(1).diagonal().mean() for s in (score, score.t())) / 2
    torch.testing.assert_close(policy.contrast(board, text), expected)


def test_texts_that_no_board_of_the_batch_shows_do_not_count():
    """A true last observation may have shown a text of its own: it is read with the others, and has no board here."""
    vec, board, texts = boards(rows=4, stage="s3")
    policy = reader(vec.spec)

    def loss(shown):
        ids = dict(zip(("manual", "goal"), texts, strict=True))
        index = torch.tensor(shown).unsqueeze(0)
        batch = Batch(
            {name: array[shown].unsqueeze(0) for name, array in board.items()},
            {"document": Reading(policy.encode("document", ids), index, ids)},
            None,
            torch.ones_like(index, dtype=torch.bool),
            torch.full_like(index, -1),
        )
        return policy.contrast_games(batch)

    shown = [0, 1, 3]
    few = {name: array[shown] for name, array in board.items()}
    torch.testing.assert_close(loss(shown), policy.contrast(few, policy.encode_text(*(each[shown] for each in texts))))


def test_it_grounds_symbols_without_reward_or_label():
    """Descent on the loss alone: on boards never seen, symbols are kin to the statements about them, and no other.

    Dog, fish and bird are always together in training, and so are sword, ball and mage: which is which no board tells.
    """
    vec, *_ = boards()
    policy = reader(vec.spec, similarity=32)
    optimizer = torch.optim.AdamW(policy.parameters(), lr=3e-3, weight_decay=0.1)
    for step in range(200):
        _, board, texts = boards(rows=128, seed=128 * step)
        loss = policy.contrast(board, policy.encode_text(*texts))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    vec, _, texts = boards(rows=200, split="test")
    entities = vec.world._games.entities[:, 1:]
    with torch.no_grad():
        kin = policy.reader.similarity(torch.arange(14), policy.encode_text(*texts))  # [U, symbols, S]
    about = {sentence: cell[0] for cell in CELLS for sentence in our_corpus().sentences["test"][cell]}
    right = [
        ENTITIES[kind] == about[vec.world.text(b)["manual"][int(kin[b, 2 + kind].argmax())]]
        for b in range(200)
        for kind in entities[b, :, KIND].tolist()
        if kind in triples("many")
    ]
    assert np.mean(right) > 0.9, np.mean(right)

"""The Guide: its loss in closed form, that it learns, and what is kept of it."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from magrounding.errors import CheckpointError, ConfigurationError, Diverged
from magrounding.extensions.lge.guide import Guide, load_guide, save_guide
from magrounding.extensions.lge.guide.encoder import HashedEncoder, LanguageModelEncoder, hashed_features
from magrounding.extensions.lge.guide.learning import GuideLearning, contrastive_loss, learn_guide
from magrounding.extensions.lge.guide.metrics import guide_metrics
from magrounding.single.scienceworld.trajectories import Trajectory
from magrounding.single.tokenizer import Tokenizer
from magrounding.vocabulary import plain_text
from tests.agents.language_models import tiny_bert

THINGS = ("water", "lead", "soap", "gallium", "mercury", "butter")


def trajectory(thing, split="train"):
    commands = ("go to kitchen", f"focus on {thing}", f"move {thing} to pot")
    others = [f"{verb} {each}" for verb in ("eat", "mix", "focus on", "read") for each in THINGS]
    valid = dict.fromkeys([*commands, *others, *(f"move {each} to pot" for each in THINGS), "go to moon"], (0, 3))
    return Trajectory("boil", split, 0, f"Your task is to boil {thing}.", commands, (True,) * 3, 100, valid)


def small(seed=0):
    torch.manual_seed(seed)
    return Guide(HashedEncoder(buckets=1024, width=16, hidden=16))


@pytest.mark.parametrize("temperature", [0.05, 0.3])
@pytest.mark.parametrize("count", [1, 4])
def test_loss_of_orthonormal_vectors(temperature, count):
    """A task is its gold action, and at right angles to all of the 2N − 1 others."""
    axes = torch.eye(2 * count)
    loss = contrastive_loss(axes[:count], axes[:count], axes[count:], temperature)
    own = math.exp(1 / temperature)
    assert loss.item() == pytest.approx(-math.log(own / (own + 2 * count - 1)), abs=1e-6)


def test_a_guide_reads_a_text_as_a_world_writes_it():
    """Lower case, spelt where it is unknown, and a space at every sign."""
    tokenizer = Tokenizer(["focus", "on"])
    text = "Focus on zinc-lead in (self watering) flower pot 2"
    row = tokenizer.row(text, 80)
    assert hashed_features(plain_text(tokenizer.words, row), 2**15).tolist() == hashed_features(text, 2**15).tolist()


def test_it_learns_to_guide_through_variations_that_it_has_not_seen():
    guide = small()
    paths = [trajectory(thing) for thing in THINGS[:-1]]
    held_out = [trajectory(THINGS[-1], "valid")]
    before = guide_metrics(guide.score, held_out, ks=(8,))
    losses = []
    learn_guide(guide, paths, GuideLearning(epochs=60, batch=8, rate=1e-2), lambda epoch, loss: losses.append(loss))
    after = guide_metrics(guide.score, held_out, ks=(8,))
    assert losses[-1] < 0.7 * losses[0]
    assert after.rsr[8] == 1 > before.rsr[8]
    assert after.map > 2 * before.map


def test_a_guide_that_diverges_is_refused():
    guide, paths = small(), [trajectory("water"), trajectory("lead")]
    with pytest.raises(Diverged):
        learn_guide(guide, paths, GuideLearning(epochs=3, batch=4, rate=1e30))
    assert all(each.isfinite().all() for each in guide.parameters())


class TestOnDisk:
    def test_it_comes_back(self, tmp_path):
        guide = Guide(small().encoder, 0.1)
        save_guide(tmp_path / "guide", guide, {"why": "a test"})
        again = load_guide(tmp_path / "guide")
        assert again.temperature == 0.1
        assert np.array_equal(again.score("boil water", THINGS), guide.score("boil water", THINGS))

    def test_files_that_are_none(self, tmp_path):
        with pytest.raises(ConfigurationError):
            load_guide(tmp_path)
        save_guide(tmp_path, small(), {})
        weights = tmp_path / "guide.safetensors"
        data = weights.read_bytes()
        weights.write_bytes(data[: len(data) // 2])
        with pytest.raises(CheckpointError):
            load_guide(tmp_path)
        weights.unlink()
        with pytest.raises(CheckpointError):
            load_guide(tmp_path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_bert(tmp_path_factory.mktemp("model"))


class TestLanguageModel:
    def test_learns_and_comes_back(self, folder, tmp_path):
        torch.manual_seed(0)
        guide = Guide(LanguageModelEncoder(folder, tokens=12))
        before = [weight.clone() for weight in guide.encoder.network.embeddings.parameters()]
        learn_guide(guide, [trajectory("water"), trajectory("lead")], GuideLearning(epochs=3, batch=4, rate=1e-2))
        after = guide.score("the mage flees", ["carrying messages", "the mage"])
        assert not any(map(torch.equal, before, guide.encoder.network.embeddings.parameters()))
        save_guide(tmp_path / "guide", guide, {})
        again = load_guide(tmp_path / "guide")
        assert np.array_equal(again.score("the mage flees", ["carrying messages", "the mage"]), after)

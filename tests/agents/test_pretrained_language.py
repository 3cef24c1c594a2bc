"""Reading with a language model: its states and nothing else, each sentence once, and no folder that is none."""

from __future__ import annotations

import copy
import json
import shutil
from pathlib import Path

import pytest
import torch

import magrounding as mg
from magrounding.agents import pretrained_language
from magrounding.agents.building import make_policy
from magrounding.agents.document_policy import Inputs
from magrounding.agents.language import join_statements
from magrounding.agents.pretrained_language import LanguageModel, PretrainedStates
from magrounding.agents.weights import save_weights
from magrounding.errors import ConfigurationError
from tests.agents.language_models import tiny_bert
from tests.agents.samples import documents_of, seen_by

WORDS = ("<pad>", "the", "mage", "flees", "carrying", "messages", ".", "unreadable")
MANUAL = torch.tensor([[[1, 2, 3, 6], [4, 5, 6, 0]], [[4, 5, 6, 0], [7, 2, 0, 0]]], dtype=torch.int16)


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    """A BERT of one layer with random weights, and a tokenizer that knows parts of words."""
    return tiny_bert(tmp_path_factory.mktemp("model"))


@pytest.fixture
def computed(monkeypatch) -> list[str]:
    """The sentences that any model has read, in order."""
    seen, compute = [], LanguageModel._compute
    monkeypatch.setattr(LanguageModel, "_compute", lambda self, new: seen.extend(new) or compute(self, new))
    return seen


def reader(folder: Path, kept: Path, tokens: int = 9) -> PretrainedStates:
    pretrained_language._open.cache_clear()  # as in a new process
    return PretrainedStates(str(folder), WORDS, tokens, str(kept))


def test_states_are_the_models_last(model, tmp_path):
    import transformers

    states, mask = reader(model, tmp_path)(MANUAL)
    assert states.shape == (2, 2, 9, 12)
    assert mask.sum(2).tolist() == [[2 + 5, 2 + 5], [2 + 5, 2 + 4]]  # with pieces of words, [CLS] and [SEP]
    network = transformers.AutoModel.from_pretrained(model).eval()
    ids = torch.tensor([[2, 4, 5, 6, 7, 11, 3, 0, 0]])  # [CLS] the mage flee ##s . [SEP], and padding
    with torch.no_grad():
        expected = network(input_ids=ids, attention_mask=(ids != 0).long()).last_hidden_state[0]
    torch.testing.assert_close(states[0, 0], expected, rtol=1e-3, atol=1e-3)
    assert torch.equal(states[0, 1], states[1, 0])


def test_a_word_s_state_is_the_mean_over_its_tokens(model, tmp_path):
    tokens, _ = reader(model, tmp_path)(MANUAL)
    by_word = PretrainedStates(str(model), WORDS, 9, str(tmp_path), by_word=True)
    states, mask = by_word(MANUAL)
    assert mask[0].tolist() == [[True] * 4 + [False] * 5, [True] * 3 + [False] * 6]
    assert not states[~mask].any()
    mage, flees = tokens[0, 0, 2], tokens[0, 0, 3:5].mean(0)  # after [CLS] the; flee ##s
    torch.testing.assert_close(states[0, 0, 1:3], torch.stack((mage, flees)), rtol=1e-3, atol=1e-3)
    pretrained_language._open.cache_clear()  # and from the disk
    again = PretrainedStates(str(model), WORDS, 9, str(tmp_path), by_word=True)
    assert torch.equal(again(MANUAL)[0], states)
    nothing = torch.zeros(1, 1, 4, dtype=torch.int16)
    assert not again(nothing)[0].any()


@pytest.mark.parametrize("agent", ["sir_bert", "sir_all"])
@pytest.mark.parametrize(("env", "options"), [("ma_rtfm", {"stage": "s1"}), ("messenger", {"stage": "s1"})])
def test_sir_adds_what_it_reads_to_the_words_it_is_about(model, tmp_path, agent, env, options):
    vec = mg.make_vec(env, 3, copy=True, **options)
    seen, _ = vec.reset(seed=0)
    texts, own = documents_of(seen), seen_by(0, seen, vec.spec)
    sizes = {"channels": [4, 6], "embedding": 5, "hidden": 6, "width": 8, "tokens": 150}
    policy = make_policy(agent, vec.spec, language_model=str(model), cache=str(tmp_path), **sizes)
    encoder = policy.reader.joint
    told, _ = encoder(policy.reader.words, texts[0])
    plain, _ = encoder.encoder(policy.reader.words, join_statements(texts[0]))
    for row, added in zip(texts[0], told - plain, strict=True):
        states = [encoder.language(line[None, None])[0][0, 0, : (line > 0).sum()] for line in row]
        expected = encoder.project(torch.cat((*states, torch.zeros(1, 12))))  # the terminator is no word of the model's
        torch.testing.assert_close(added[: len(expected)], expected, rtol=1e-4, atol=1e-5)
    output = policy.respond(Inputs(own, policy.encode_text(*texts), torch.arange(3)))
    output.value.sum().backward()
    assert all(e.project.weight.grad.any() for e in (policy.reader.joint, policy.reader.fields))
    longer = torch.nn.functional.pad(texts[0], (0, 200, 0, 2))
    got = policy.respond(Inputs(own, policy.encode_text(longer, texts[1]), torch.arange(3)))
    torch.testing.assert_close(got.value, output.value, rtol=0, atol=1e-6)
    save_weights(tmp_path / "run", [policy.state_dict()], {})


def test_each_sentence_is_read_once_on_a_machine(model, tmp_path, computed):
    first = reader(model, tmp_path)
    states, _ = first(MANUAL)
    assert computed == ["the mage flees .", "carrying messages .", "unreadable mage"]
    assert torch.equal(first(MANUAL)[0], states)
    again, _ = reader(model, tmp_path)(MANUAL)
    assert len(computed) == 3
    assert torch.equal(again, states)
    files = sorted(tmp_path.rglob("*.*"))
    assert len(files) == 3
    files[0].write_bytes(files[0].read_bytes()[:100])  # a file that is damaged is made anew
    assert torch.equal(reader(model, tmp_path)(MANUAL)[0], states)
    assert len(computed) == 4


def test_what_is_kept_belongs_to_one_model_and_one_length(model, tmp_path, computed):
    reader(model, tmp_path)(MANUAL)
    reader(model, tmp_path, tokens=10)(MANUAL)
    assert len(computed) == 6
    other = tmp_path / "other"
    shutil.copytree(model, other)
    config = json.loads((other / "config.json").read_text())
    (other / "config.json").write_text(json.dumps(config | {"hidden_act": "relu"}))
    reader(other, tmp_path)(MANUAL)
    assert len(computed) == 9


def test_emma_reads_with_it_and_does_not_train_it(model, tmp_path):
    vec = mg.make_vec("messenger", 4, stage="s1")
    observation, _ = vec.reset(seed=0)
    policy = make_policy("emma", vec.spec, language_model=str(model), cache=str(tmp_path))
    text = policy.encode_text(*documents_of(observation))
    assert text["key"].shape == (4, 3, 256)
    assert policy.key.weight.shape == (256, 12)
    counted = sum(p.numel() for p in policy.parameters())
    assert counted == 1_959_496 - 2 * (768 - 12) * 257
    save_weights(tmp_path / "run", [policy.state_dict()], {})
    assert sum(t.numel() for t in policy.state_dict().values()) == counted
    twin = copy.deepcopy(policy)
    assert twin.reader is policy.reader
    text["key"].sum().backward()
    assert policy.key.weight.grad.any()


def without(model, tmp_path, *names):
    """A copy of the model that lacks some files."""
    folder = tmp_path / "broken"
    shutil.copytree(model, folder)
    for name in names:
        (folder / name).unlink()
    return folder


@pytest.mark.parametrize("missing", ["model.safetensors", "config.json", "tokenizer.json"])
def test_folders_that_lack_something(model, tmp_path, missing):
    with pytest.raises(ConfigurationError):
        reader(without(model, tmp_path, missing), tmp_path / "kept")
    assert not (tmp_path / "kept").exists()


def test_weights_that_are_damaged_or_of_another_network(model, tmp_path):
    folder = without(model, tmp_path)
    whole = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ConfigurationError):
        reader(folder, tmp_path / "kept")(MANUAL)
    from safetensors.torch import save_file

    save_file({"something": torch.zeros(2)}, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ConfigurationError):
        reader(folder, tmp_path / "kept")(MANUAL)
    assert not (tmp_path / "kept").exists()

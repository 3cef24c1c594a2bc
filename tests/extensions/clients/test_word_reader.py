"""WordReader: word ids are names, and a text is read for what it says."""

import numpy as np
import pytest
import torch
from gymnasium import spaces

import magrounding as mg
from magrounding.errors import ConfigurationError
from magrounding.extensions.clients import for_tensors
from magrounding.extensions.clients.word_reader import WordReader

WORLDS = {
    "rtfm": {"task": "nl"},
    "rock_paper_scissors": {},
    "ma_rtfm": {"agents": 3, "stage": "s5"},
    "messenger": {"stage": "s3"},
    "ma_messenger": {"stage": "s4", "agents": 3},
    "babyai": {"level": "GoTo"},
}

IDLE = {
    "rock_paper_scissors": {"weight.weight"},
    "messenger": {"sharpness", "weight.weight"},
    "ma_messenger": {"sharpness", "weight.weight"},
    "babyai": {"sharpness", "like.weight", "like.bias"},
}
"""What has nothing to do: no words in common with a goal, none with the manual, or one text alone to attend to."""


def reader_of(spec, **options):
    torch.manual_seed(0)
    return WordReader(spec, spec.space(), **options)


def played(id, steps=12, **options):
    """What one agent sees in the steps of some games, [N, …], and what the world is."""
    vec = mg.make_vec(id, 6, copy=True, **options)
    rng, frames = np.random.default_rng(0), []
    seen, _ = vec.reset(seed=3)
    for _ in range(steps):
        frames.append({f.name: seen[f.name] if f.shared else seen[f.name][:, 0] for f in vec.spec.fields})
        seen, *_ = vec.step(rng.integers(0, vec.spec.num_actions, (6, vec.num_agents)))
    return vec.spec, {name: torch.as_tensor(np.concatenate([f[name] for f in frames])) for name in frames[0]}


@pytest.mark.parametrize("id", WORLDS)
def test_it_reads_every_world_and_learns_with_all_of_it(id):
    if id == "babyai":
        pytest.importorskip("minigrid")
    spec, seen = played(id, **WORLDS[id])
    reader = reader_of(spec, width=32)
    out = reader(seen)
    assert out.shape == (72, 32)
    (out * torch.randn_like(out)).sum().backward()
    idle = {name for name, each in reader.named_parameters() if each.grad is None or not each.grad.any()}
    assert idle == IDLE.get(id, set())


def test_a_fixed_number_of_things_is_read_alike_and_within_vmap():
    spec, seen = played("ma_rtfm", stage="s1", agents=2)
    torch.manual_seed(0)
    reader = WordReader(spec, spec.space(), things=8)
    free = reader_of(spec)
    free.load_state_dict(reader.state_dict())
    torch.testing.assert_close(reader(seen), free(seen))
    halves = {name: part.unflatten(0, (2, -1)) for name, part in seen.items()}
    torch.testing.assert_close(torch.vmap(reader)(halves).flatten(0, 1), free(seen))


def test_flat_observations_are_read_like_dicts():
    env = for_tensors(mg.make("ma_rtfm", stage="s1", agents=2), flatten=True)
    spec, seen = played("ma_rtfm", stage="s1", agents=2)
    seen = {name: seen[name] for name in env.layout}
    torch.manual_seed(0)
    flat = WordReader(spec, env.layout)
    by_name = WordReader(spec, spaces.Dict({name: spec.space()[name] for name in env.layout}))
    by_name.load_state_dict(flat.state_dict())
    together = torch.cat([seen[name].float().flatten(1) for name in env.layout], 1)
    torch.testing.assert_close(flat(together), by_name(seen), rtol=0, atol=0)
    assert flat(together.view(6, 12, -1)).shape == (6, 12, flat.width)
    with pytest.raises(ConfigurationError):
        by_name(together)


@pytest.mark.parametrize("id", ["rtfm", "messenger"])
def test_ids_are_names(id):
    """Other ids for the same words, and the same rows of the tables: nothing changes."""
    spec, seen = played(id, **WORLDS[id])
    reader = reader_of(spec)
    before = reader(seen)
    fixed = {0, *spec.grid.scenery_ids, *spec.grid.avatar_ids}
    free = torch.tensor([i for i in range(spec.vocabulary_size) if i not in fixed])
    renamed = torch.arange(spec.vocabulary_size)
    renamed[free] = free[torch.randperm(len(free), generator=torch.Generator().manual_seed(1))]
    words = {"grid", "inventory"} | {text.name for text in spec.texts}
    other = {name: renamed[part.long()] if name in words else part for name, part in seen.items()}
    for table in (reader.embedding, reader.weight):
        table.weight.data[renamed] = table.weight.data.clone()
    torch.testing.assert_close(reader(other), before, rtol=1e-4, atol=1e-5)
    assert not torch.equal(other["manual"], seen["manual"])


def test_numbers_of_any_type_are_read_alike():
    """SB3 turns every observation into float32."""
    spec, seen = played("ma_rtfm", **WORLDS["ma_rtfm"])
    reader = reader_of(spec)
    torch.testing.assert_close(reader({name: part.float() for name, part in seen.items()}), reader(seen))


def test_neither_order_nor_company_of_statements_and_games_matters():
    spec, seen = played("rtfm", **WORLDS["rtfm"])
    reader = reader_of(spec)
    out = reader(seen)
    turned = {**seen, "manual": seen["manual"].flip(1)}
    torch.testing.assert_close(reader(turned), out, rtol=1e-4, atol=1e-5)
    padded = {**seen, "manual": torch.nn.functional.pad(seen["manual"], (0, 3, 0, 2))}
    torch.testing.assert_close(reader(padded), out, rtol=1e-4, atol=1e-5)
    for i in (0, 17, 71):
        alone = {name: part[i : i + 1] for name, part in seen.items()}
        torch.testing.assert_close(reader(alone), out[i : i + 1], rtol=1e-4, atol=1e-5)


def test_what_the_manual_says_matters():
    spec, seen = played("rtfm", task="simple_stationary")
    reader = reader_of(spec)
    told, lied = reader(seen), reader({**seen, "manual": seen["manual"].roll(1, 0)})
    assert (told - lied).abs().amax(1).gt(1e-4).float().mean() > 0.5


def test_where_things_are_is_seen_from_the_agent():
    """Whole map and agent moved by one cell, nothing else: only the agent's own place is another."""
    spec, seen = played("rtfm", task="simple_stationary")
    reader = reader_of(spec)
    place = reader.place
    features = torch.randn(72, 1, 16)
    row, column = torch.randint(0, 4, (2, 72, 1))
    moved = {"position": seen["position"] % 4 + 1}
    here = place(features, row, column, {"position": seen["position"] % 4})
    torch.testing.assert_close(place(features, row + 1, column + 1, moved), here)


def test_a_mask_elsewhere_is_no_loss():
    spec, seen = played("rtfm")
    inner = spaces.Dict({name: part for name, part in spec.space().spaces.items() if name != "action_mask"})
    assert WordReader(spec, inner)(seen).shape == (72, 128)


def test_what_it_cannot_read_is_refused():
    spec = mg.ENVS["rtfm"].describe()
    for shown in (spaces.Box(0, 1, (3,)), spaces.Dict({"manual": spaces.Box(0, 1, (3,))})):
        with pytest.raises(ConfigurationError):
            WordReader(spec, shown)
    with pytest.raises(ConfigurationError):
        WordReader(spec, spaces.Dict({"grid": spec.space()["grid"]}))

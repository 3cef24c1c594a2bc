"""SIR against its equations, written out for one observation; its variants, and the invariances it owes."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import magrounding as mg
from magrounding.agents.building import make_policy
from magrounding.agents.document_policy import Inputs
from magrounding.agents.modules import distance_map
from magrounding.agents.policy import Batch, Reading
from magrounding.agents.sir.network import Sir
from magrounding.spec import EnvSpec, Text
from tests.agents.by_the_book import attend, check_equations, convolve, modulate_both, read, weigh
from tests.agents.samples import (
    NARROW_SIR,
    VOCABULARY,
    Sample,
    documents_of,
    make_sample,
    make_spec,
    seen_by,
)

VARIANTS = ("sir", "sir_state", "sir_local_conv", "sir_entity_attn")


def narrow(agent: str = "sir", spec: EnvSpec | None = None, **options) -> Sir:
    torch.manual_seed(0)
    policy = make_policy(agent, spec or make_spec(), **(NARROW_SIR | options))
    assert isinstance(policy, Sir)
    return policy


def without(spec: EnvSpec, *names: str) -> EnvSpec:
    return replace(spec, fields=tuple(field for field in spec.fields if field.name not in names))


def act(policy: Sir, batch: Sample, memory: Tensor | None = None):
    return policy.respond(
        Inputs(batch.observation, policy.encode_text(batch.manual, batch.goal), batch.document), memory
    )


def count(agent: str, **options) -> int:
    return sum(p.numel() for p in make_policy(agent, make_spec(8, 30_522), **options).parameters())


def test_parameter_counts():
    """SILG's wordpieces, RTFM's two fields and five actions."""
    embeddings, encoders, stack, heads, scorers = 3_052_200, 966_400, 41_200 + 1_283_904, 28_406, 1_604
    assert count("sir") == embeddings + encoders + stack + heads + scorers == 5_373_714
    assert count("sir_state") == 5_373_714 + 1_283_200
    assert count("sir_local_conv") == 5_373_714 + stack
    # Words, and what reads and sees them, are 400 wide; and there are keys and values.
    wider = 300 * (30_522 + 2 * 8 * 200 + 400 + 3 * 16 * 9)
    assert count("sir_entity_attn") == 5_373_714 + wider + 2 * 400 * 401


def stack_by_the_book(stack, cells: Tensor, z: Tensor, text: Tensor, joint: Tensor) -> Tensor:
    """V_last [C, H, W] (eq. 7), with V_(L-1) + V_(L-2) into the last layer."""
    maps = [cells]
    query = stack.initial(torch.cat((cells, z)).flatten(1).max(1).values)
    for i, layer in enumerate(stack.layers):
        entering = maps[-1] + maps[-2] if i == len(stack.layers) - 1 else maps[-1]
        x = torch.cat((text, attend(joint, query)))
        maps.append(modulate_both(layer, convolve(layer, entering, z), x))
        query = layer.query(maps[-1].flatten(1).max(1).values) if layer.query is not None else query
    return maps[-1]


def by_the_book(policy: Sir, observation: dict[str, Tensor], manual: Tensor, goal: Tensor, memory: Tensor):
    """Logits [A], before masking, and value of one observation (SILG eq. 1–7, sec. 4.1)."""
    reader = policy.reader

    joint = read(reader.words, reader.joint.encoder, manual)
    texts = {"goal": goal, "inventory": observation["inventory"]}
    states = {name: read(reader.words, reader.fields.encoder, ids) for name, ids in texts.items()}
    said = torch.stack([weigh(each, reader.scorers[name].score) for name, each in states.items()])
    about = torch.stack([attend(joint, each) for each in said])
    text = torch.cat((weigh(said, reader.merge_told.score), weigh(about, reader.merge_joint.score)))
    grid = observation["grid"].long()
    cells = reader.words(grid).sum(2)  # [H, W, D]
    if policy.entities is not None:
        keys, values = policy.entities.key(said), policy.entities.value(said)
        weights = (cells @ keys.t() / keys.shape[1] ** 0.5).softmax(-1)
        cells = (weights @ values) / len(said) * grid.any(2, keepdim=True)
    cells = cells.permute(2, 0, 1)
    z = distance_map(observation["position"][None], *grid.shape[:2])[0]
    pooled = stack_by_the_book(policy.grounding, cells, z, text, joint).flatten(1).max(1).values
    if policy.local is not None:
        row, trajectory = observation["position"].tolist()
        around = [F.pad(part, (1, 1, 1, 1))[:, row : row + 3, trajectory : trajectory + 3] for part in (cells, z)]
        if row < 0:
            around = [torch.zeros(len(part), 3, 3) for part in around]
        pooled = pooled + stack_by_the_book(policy.local, *around, text, joint).flatten(1).max(1).values
    hidden = torch.tanh(policy.final(pooled))
    if policy.tracker is not None:
        hidden = hidden + policy.tracker(hidden, (memory[0], memory[1]))[0]
    return policy.policy.score(hidden), policy.value(hidden)[0]


@pytest.mark.parametrize("agent", VARIANTS)
def test_equations(agent):
    policy, batch = narrow(agent), make_sample(20, 3)
    batch.observation["position"][1:5] = torch.tensor([[0, 0], [0, 5], [5, 3], [5, 5]])
    batch.observation["grid"][:, 2, 3] = 0  # a cell without words
    memory = torch.randn(20, 2, NARROW_SIR["width"])
    given = memory if agent == "sir_state" else None
    check_equations(policy, batch, lambda n, *shown: by_the_book(policy, *shown, memory[n]), given, rtol=1e-4)


def shown(policy: Sir, batch: Sample, texts: dict[str, Tensor]) -> Batch:
    """One step of N games that show the texts of a sample, and others [N, …] by name, each distinct one once."""
    n = len(batch.document)
    ids = {"manual": batch.manual, "goal": batch.goal}
    readings = {"document": Reading(policy.encode("document", ids), batch.document.unsqueeze(0), ids)}
    for name, array in texts.items():
        distinct, which = torch.unique(array.flatten(1), dim=0, return_inverse=True)
        own = {name: distinct.unflatten(1, array.shape[1:])}
        readings[name] = Reading(policy.encode(name, own), which.unsqueeze(0), own)
    observation = {name: array.unsqueeze(0) for name, array in batch.observation.items()}
    begins = torch.ones(1, n, dtype=torch.bool)
    return Batch(observation, readings, policy.initial_memory(n), begins, torch.full((1, n), -1))


def test_further_texts_are_fields_and_the_manual_s_statements_where_nothing_else_is():
    plain, bare = make_spec(), without(make_spec(), "goal", "inventory")
    message = replace(bare, fields=(*bare.fields, Text("items", (2, 6), 0, VOCABULARY - 1)))
    assert list(narrow(spec=plain).reader.scorers) == ["goal", "inventory"]
    assert list(narrow(spec=message).reader.scorers) == ["items_0", "items_1"]
    assert list(narrow(spec=bare).reader.scorers) == ["statements"]
    assert narrow(spec=plain).reads == {"document": ("manual", "goal")}
    policy, batch = narrow(spec=message), make_sample(6, 2)
    assert policy.reads == {"document": ("manual", "goal"), "items": ("items",)}
    ids = torch.randint(6, VOCABULARY, (6, 2, 6), dtype=torch.int16)
    nothing = batch._replace(goal=batch.goal[:, :0])
    values = [policy(shown(policy, nothing, {"items": i})).value for i in (ids, ids.flip(1), F.pad(ids, (0, 3)))]
    assert not torch.isclose(values[0], values[1]).any()  # each row has a scorer of its own
    torch.testing.assert_close(values[2], values[0], rtol=0, atol=1e-6)


@torch.no_grad()
def test_a_text_of_a_step_is_read_like_an_inventory_of_the_same_words():
    """The inventory is an array of word ids, a message a text of its own: what is made of either is the same."""
    spec = make_spec()
    kept = without(spec, "inventory")
    message = replace(kept, fields=(*kept.fields, Text("message", (2,), 0, VOCABULARY - 1)))
    held, told, batch = narrow(spec=spec), narrow(spec=message), make_sample(9, 3)
    told.load_state_dict({k.replace("scorers.inventory", "scorers.message_0"): v for k, v in held.state_dict().items()})
    expected = act(held, batch)
    got = told(shown(told, batch, {"message": batch.observation["inventory"]}))
    torch.testing.assert_close(got.logits[0], expected.logits, rtol=0, atol=1e-6)
    torch.testing.assert_close(got.value[0], expected.value, rtol=0, atol=1e-6)


def play(env: str, rows: int = 4, **options):
    """Spec, observations of the first agent, manual and goal of the first step of some games."""
    vec = mg.make_vec(env, rows, copy=True, **options)
    seen, _ = vec.reset(seed=0)
    return vec.spec, Sample(seen_by(0, seen, vec.spec), *documents_of(seen), torch.arange(rows))


@pytest.mark.parametrize("agent", VARIANTS)
def test_statements_are_fields_of_messenger_whatever_their_number(agent):
    (few, _), (many, batch) = play("messenger", stage="s1"), play("messenger", stage="s3")
    policy = narrow(agent, spec=many)
    policy.load_state_dict(narrow(agent, spec=few).state_dict())  # a curriculum carries weights on
    with torch.no_grad():
        text = policy.encode_text(batch.manual, batch.goal)
        fields = policy.reader.look_up(Inputs(batch.observation, text, batch.document))
        assert fields.summary.shape[:2] == (4, 6)
        order = batch.manual[:, [3, 0, 5, 1, 4, 2]]
        shuffled = policy.reader.look_up(
            Inputs(batch.observation, policy.encode_text(order, batch.goal), batch.document)
        )
        torch.testing.assert_close(shuffled.summary, fields.summary[:, [3, 0, 5, 1, 4, 2]], rtol=0, atol=1e-6)
        others = act(policy, batch._replace(manual=batch.manual.roll(1, 0)))
        assert not torch.isclose(others.value, act(policy, batch).value, atol=1e-6).all()


def test_entity_attention_is_grounded_by_a_contrast_of_boards_with_texts():
    policy, batch = narrow("sir_entity_attn"), make_sample(3, 3)
    text, grid = policy.encode_text(batch.manual, batch.goal), batch.observation["grid"]
    loss = policy.contrast({"grid": grid}, text)
    scores = torch.zeros(3, 3)
    for board in range(3):
        for word in grid[board].flatten().long():
            if int(word) not in policy.scenery:
                fits = policy.entities.key(text["summary"]) @ policy.reader.words(word) / policy.reader.width**0.5
                scores[board] += fits.logsumexp(1)
    both = F.cross_entropy(scores, torch.arange(3)) + F.cross_entropy(scores.T, torch.arange(3))
    torch.testing.assert_close(loss, both / 2, rtol=1e-4, atol=1e-5)
    assert policy.contrasts
    assert not narrow("sir").contrasts

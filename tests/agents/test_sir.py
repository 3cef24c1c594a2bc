"""SIR against its equations, written out for one observation; its variants, and the invariances it owes."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import magrounding as mg
from magrounding.agents.building import make_policy
from magrounding.agents.document_policy import DocumentPolicy, Inputs
from magrounding.agents.modules import distance_map, embed_cells
from magrounding.agents.policy import Batch, Reading
from magrounding.agents.sir.network import Sir
from magrounding.errors import ConfigurationError
from magrounding.experiment.config import make_config
from magrounding.spec import EnvSpec, Grid, Text
from magrounding.training.impala import ImpalaConfig, ImpalaLearner
from magrounding.training.ppo import PPOConfig, PPOLearner
from tests.agents.samples import (
    NARROW_SIR,
    VOCABULARY,
    Sample,
    batch_of,
    documents_of,
    make_sample,
    make_spec,
    one_by_one,
    seen_by,
)
from tests.training.toy_games import collect

VARIANTS = ("sir", "sir_state", "sir_local_conv", "sir_entity_attn")
WORLDS = (("ma_rtfm", {"stage": "s1"}), ("messenger", {"stage": "s3"}), ("ma_messenger", {"stage": "s4"}))


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


def weigh(states: Tensor, scorer: torch.nn.Linear) -> Tensor:
    return (states @ scorer.weight[0] + scorer.bias).softmax(0) @ states


def attend(states: Tensor, query: Tensor) -> Tensor:
    return (states @ query).softmax(0) @ states


def stack_by_the_book(stack, cells: Tensor, z: Tensor, text: Tensor, joint: Tensor) -> Tensor:
    """V_last [C, H, W] (eq. 7), with V_(L-1) + V_(L-2) into the last layer."""
    maps = [cells]
    query = stack.initial(torch.cat((cells, z)).flatten(1).max(1).values)
    for i, layer in enumerate(stack.layers):
        entering = maps[-1] + maps[-2] if i == len(stack.layers) - 1 else maps[-1]
        x = torch.cat((text, attend(joint, query)))
        gamma, beta, value = layer.text(x)[:, None, None].chunk(3)
        convolved = F.conv2d(torch.cat((entering, z))[None], layer.conv.weight, layer.conv.bias, padding=1)[0]
        visual, gate, shift = convolved.chunk(3)
        maps.append(torch.relu((1 + gamma) * visual + beta) + torch.relu((1 + gate) * value + shift))
        query = layer.query(maps[-1].flatten(1).max(1).values) if layer.query is not None else query
    return maps[-1]


def by_the_book(policy: Sir, observation: dict[str, Tensor], manual: Tensor, goal: Tensor, memory: Tensor):
    """Logits [A], before masking, and value of one observation (SILG eq. 1–7, sec. 4.1)."""
    reader = policy.reader

    def read(part, ids: Tensor) -> Tensor:
        words = ids.flatten()[ids.flatten() > 0].long()
        vectors = reader.words(torch.cat((words, words.new_zeros(1))))
        encoder = part.encoder
        return torch.cat((encoder.ahead(vectors)[0], encoder.back(vectors.flip(0))[0].flip(0)), 1)

    joint = read(reader.joint, manual)
    texts = {"goal": goal, "inventory": observation["inventory"]}
    said = torch.stack([weigh(read(reader.fields, ids), reader.scorers[name].score) for name, ids in texts.items()])
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
    with torch.no_grad():
        output = act(policy, batch, memory if agent == "sir_state" else None)
        for n in range(20):
            one = {name: tensor[n] for name, tensor in batch.observation.items()}
            u = batch.document[n]
            logits, value = by_the_book(policy, one, batch.manual[u], batch.goal[u], memory[n])
            allowed = one["action_mask"].bool()
            torch.testing.assert_close(output.logits[n][allowed], logits[allowed], rtol=1e-4, atol=1e-6)
            torch.testing.assert_close(output.value[n], value, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("agent", VARIANTS)
def test_every_variant_has_options_of_its_own(agent):
    assert act(narrow(agent), make_sample(5, 2)).memory is None or agent == "sir_state"
    part = agent.removeprefix("sir_")
    if part != "sir":
        with pytest.raises(ConfigurationError, match=f"itself sets {part} to True"):
            make_policy(agent, make_spec(), **{part: False})


def test_one_field_is_not_merged():
    policy, batch = narrow(spec=without(make_spec(), "inventory")), make_sample(6, 2)
    with torch.no_grad():
        fields = policy.reader.look_up(
            Inputs(batch.observation, policy.encode_text(batch.manual, batch.goal), batch.document)
        )
        assert fields.summary.shape[1] == 1
        torch.testing.assert_close(
            policy.reader.merge(fields), torch.cat((fields.summary[:, 0], fields.joint[:, 0]), 1), rtol=0, atol=0
        )


def test_an_lstm_of_zeros_tracks_nothing():
    base, tracking, batch = narrow(), narrow("sir_state"), make_sample(8, 3)
    tracking.load_state_dict(base.state_dict(), strict=False)
    assert not torch.allclose(act(tracking, batch).value, act(base, batch).value)
    with torch.no_grad():
        for parameter in tracking.tracker.parameters():
            parameter.zero_()
    memory = tracking.initial_memory(8)
    for _ in range(2):
        output, expected = act(tracking, batch, memory), act(base, batch)
        assert torch.equal(output.logits, expected.logits)
        assert torch.equal(output.value, expected.value)
        memory = output.memory


def test_unrolls_carry_the_state_and_episodes_begin_with_zeros():
    policy, batch, games = narrow("sir_state"), make_sample(24, 3), 4
    restarts = torch.zeros(6, games, dtype=torch.bool)
    restarts[3, 1] = restarts[4, 2] = True
    start = torch.randn(games, 2, NARROW_SIR["width"])
    with torch.no_grad():
        text = policy.encode_text(batch.manual, batch.goal)

        def unroll(first: int, last: int, memory: Tensor, how=Sir.unroll):
            some = slice(first * games, last * games)
            seen = {name: tensor[some] for name, tensor in batch.observation.items()}
            return how(policy, Inputs(seen, text, batch.document[some]), memory, restarts[first:last])

        whole = unroll(0, 6, start)
        one = unroll(0, 3, start)
        other = unroll(3, 6, one.memory[-games:])
        stepwise = unroll(0, 6, start, DocumentPolicy.unroll)
        fresh = unroll(3, 6, torch.zeros_like(start))
    for got in (stepwise, [torch.cat(parts) for parts in zip(one[:3], other[:3], strict=True)]):
        for part, expected in zip(got[:3], whole[:3], strict=True):
            torch.testing.assert_close(part, expected, rtol=0, atol=1e-6)
    later, values = whole.value.view(6, games)[3:], fresh.value.view(3, games)
    torch.testing.assert_close(later[:, 1], values[:, 1], rtol=0, atol=1e-6)  # a new episode from step 3
    assert not torch.isclose(later[0, [0, 2, 3]], values[0, [0, 2, 3]]).any()
    assert torch.isclose(later[1, 2], values[1, 2])  # another from step 4


def test_only_state_is_unrolled():
    batch = make_sample(4, 2)
    policy = narrow()
    with pytest.raises(TypeError, match="set state to true"):
        policy.unroll(
            Inputs(batch.observation, {}, batch.document), torch.zeros(4, 2, 16), torch.zeros(1, 4, dtype=torch.bool)
        )


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


def test_gradients_reach_what_reads_a_further_text():
    spec = make_spec()
    policy = narrow("sir_state", spec=replace(spec, fields=(*spec.fields, Text("message", (6,), 0, VOCABULARY - 1))))
    message = torch.randint(6, VOCABULARY, (7, 6), generator=torch.Generator().manual_seed(0))
    policy(shown(policy, make_sample(7, 2), {"message": message})).value.sum().backward()
    assert policy.reader.scorers["message_0"].score.weight.grad.any()


@torch.no_grad()
def test_where_there_is_no_manual_the_goal_is_the_joint_text():
    policy, batch = narrow(spec=without(make_spec(), "manual")), make_sample(6, 2)
    bare = batch._replace(manual=batch.manual.flatten(1)[:, :0])
    expected = policy.encode_text(batch.goal.unsqueeze(1), batch.goal)
    got = policy.encode_text(bare.manual, bare.goal)
    assert all(torch.equal(got[name], expected[name]) for name in expected)
    assert act(policy, bare).value.isfinite().all()


@pytest.mark.parametrize("agent", ["sir", "sir_state"])
@torch.no_grad()
def test_many_steps_are_that_many_single_ones(agent):
    """With a message that changes from step to step, and a state that is handed on."""
    spec, steps, games = make_spec(), 6, 4
    policy = narrow(agent, spec=replace(spec, fields=(*spec.fields, Text("message", (5,), 0, VOCABULARY - 1))))
    sample = make_sample(steps * games, games)
    observation = {name: array.unflatten(0, (steps, games)) for name, array in sample.observation.items()}
    restarts = torch.zeros(steps, games, dtype=torch.bool)
    restarts[0] = restarts[3, 1] = restarts[4, 2:] = True
    batch = batch_of(policy, observation, sample.manual, sample.goal, restarts)
    ids = {"message": torch.randint(6, VOCABULARY, (9, 5), generator=torch.Generator().manual_seed(0))}
    index = torch.randint(0, 9, (steps, games), generator=torch.Generator().manual_seed(1))
    batch = batch._replace(texts={**batch.texts, "message": Reading(policy.encode("message", ids), index)})
    output = policy(batch)
    parts = [part for part in (output.logits, output.value, output.memory) if part is not None]
    assert len(parts) == (3 if agent == "sir_state" else 2)
    for got, expected in zip(parts, one_by_one(policy, batch), strict=True):
        torch.testing.assert_close(got, expected, rtol=0, atol=1e-6)
    batch.texts["message"].index[2, 0] += 1
    batch.texts["message"].index[2, 0] %= 9
    differ = (policy(batch).value - output.value).abs() > 1e-7
    assert differ[2, 0]
    assert differ.sum() == (4 if agent == "sir_state" else 1)  # and those that remember it


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
        padded = batch._replace(manual=F.pad(batch.manual, (0, 3, 0, 2)))
        expected, got = act(policy, batch), act(policy, padded)
        torch.testing.assert_close(got.value, expected.value, rtol=0, atol=1e-6)
        others = act(policy, batch._replace(manual=batch.manual.roll(1, 0)))
        assert not torch.isclose(others.value, expected.value, atol=1e-6).all()


@pytest.mark.parametrize("agent", VARIANTS)
@torch.no_grad()
def test_symbols_of_messenger_may_have_a_table_of_their_own(agent):
    """One row for each id, 0 included; of a cell that shows one thing, the other places add the row of 0."""
    spec, batch = play("messenger", stage="s1")
    policy, words = narrow(agent, spec=spec, symbol_table=True), narrow(agent, spec=spec)
    width, table = words.config.cells, policy.symbols.weight
    assert table.shape == (19, width)
    assert table[0].any()
    counts = [sum(p.numel() for p in network.parameters()) for network in (policy, words)]
    assert counts[0] - counts[1] == 19 * width
    # A table of the same words, with zeros for 0, is no difference.
    policy.load_state_dict(words.state_dict(), strict=False)
    table.copy_(words.reader.words.weight[:19])
    expected = act(words, batch)
    torch.testing.assert_close(act(policy, batch).logits, expected.logits, rtol=0, atol=1e-6)
    table[0] = 0.1
    other = act(policy, batch)
    assert not torch.isclose(other.value, expected.value, atol=1e-6).all()
    if agent == "sir":
        cells = embed_cells(policy.symbols, batch.observation["grid"])
        summed = table[batch.observation["grid"].long()].sum(3).permute(0, 3, 1, 2)
        torch.testing.assert_close(cells, summed)


def test_a_table_of_symbols_needs_a_map_and_learns_all_rows():
    with pytest.raises(ConfigurationError, match="shows no map of symbols: set symbol_table to false"):
        narrow(spec=without(make_spec(), "grid", "position"), symbol_table=True)
    spec, batch = play("messenger", stage="s1")
    policy = narrow(spec=spec, symbol_table=True)
    act(policy, batch).value.sum().backward()
    assert policy.symbols.weight.grad[0].any()


def test_the_preset_of_silg_has_the_table_in_messenger():
    for agent in ("sir", "sir_state", "sir_entity_attn"):
        config = make_config("messenger", agent, preset="silg")
        assert config.network == {"symbol_table": True}
        assert make_config("messenger", agent, preset="quick").network == {}
        assert make_config("rtfm", agent, preset="silg").network == {}


def test_local_conv_needs_a_place():
    with pytest.raises(ConfigurationError, match="does not say where an agent is: set local_conv to false"):
        narrow("sir_local_conv", spec=without(make_spec(), "position"))
    batch = make_sample(3, 1)
    nowhere = {name: tensor for name, tensor in batch.observation.items() if name != "position"}
    policy = narrow(spec=without(make_spec(), "position"))
    fields = (replace(each, egocentric=True) if isinstance(each, Grid) else each for each in make_spec().fields)
    turning = replace(make_spec(), fields=tuple(fields))
    with pytest.raises(ConfigurationError, match="set local_conv to false"):
        narrow("sir_local_conv", spec=turning)  # where it stands on its own map is not its position
    bare = batch._replace(observation=nowhere)
    torch.testing.assert_close(act(narrow(spec=turning), batch).value, act(policy, bare).value)
    batch.observation["position"][:] = -1
    torch.testing.assert_close(act(policy, batch._replace(observation=nowhere)).value, act(policy, batch).value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"crop": 4}, "crop is odd, as the agent is in the middle, not 4"),
        ({"bert": True}, "bert is True and language_model is '': set bert to true and language_model to"),
        ({"language_model": "bert"}, "bert is False and language_model is 'bert'"),
        ({"state": 1}, "state of SirConfig takes True or False, got 1"),
        ({"goal_hidden": 3}, "unknown option of sir 'goal_hidden'; choose from: channels, embedding"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ConfigurationError, match=message):
        make_policy("sir", make_spec(), **options)


@pytest.mark.parametrize("agent", ["sir", "sir_state"])
@pytest.mark.parametrize(("env", "options"), WORLDS)
def test_learners_replay_what_was_played_and_learn_from_it(env, options, agent):
    vec = mg.make_vec(env, 4, max_cycles=4, **options)
    policies = [narrow(agent, spec=vec.spec) for _ in range(vec.num_agents)]
    rollout = collect(vec, policies, unroll=6, skip=1)
    trajectory = rollout.trajectories[0]
    assert trajectory.restarts[1:].any()
    for learner in (
        PPOLearner(policies[0], PPOConfig(unroll=6, epochs=1, minibatches=2)),
        ImpalaLearner(policies[0], ImpalaConfig(unroll=6, learning_rate=5e-4, chunk=2)),
    ):
        if isinstance(learner, PPOLearner):  # nothing is learnt yet
            now = learner.reevaluate(trajectory.games())
            torch.testing.assert_close(now.logits, torch.from_numpy(trajectory.logits), rtol=1e-4, atol=1e-5)
            torch.testing.assert_close(now.value, torch.from_numpy(trajectory.value), rtol=1e-4, atol=1e-5)
        report = learner.update(trajectory, 0)
        assert all(torch.isfinite(torch.tensor(number)) for number in report.values())
        # A softmax over what a layer scores does not notice the layer's bias: its gradient is rounding, or none.
        learnt = {name: p.grad for name, p in policies[0].named_parameters() if not name.endswith("score.bias")}
        learnt.pop("reader.scorers.inventory.score.weight", None)  # nobody has picked up anything yet
        assert [name for name, gradient in learnt.items() if gradient is None or not gradient.any()] == []

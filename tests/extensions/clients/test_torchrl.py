"""TorchRL itself plays our games: one through its wrapper of PettingZoo, many through `BatchedEnv`."""

import pytest

import magrounding as mg
from magrounding.errors import ConfigurationError
from magrounding.extensions.clients import for_tensors

pytest.importorskip("torchrl", reason="TorchRL is not installed: make test-clients")
pytestmark = [
    pytest.mark.filterwarnings("ignore:PettingZoo in TorchRL is tested using version"),  # it names 1.24.3
    pytest.mark.filterwarnings("ignore::DeprecationWarning:torchrl|tensordict|abc"),  # its own parts, as it is imported
]

import torch  # noqa: E402
from torchrl.envs import PettingZooWrapper  # noqa: E402
from torchrl.envs.utils import check_env_specs  # noqa: E402

from magrounding.extensions.clients.torchrl import BatchedEnv  # noqa: E402

DEADLY = {"stage": "s4", "reading": "kind", "agents": 3, "death": "individual", "max_cycles": 20}
WORLDS = {"ma_rtfm": {"stage": "s1", "agents": 2, "max_cycles": 15}, "ma_messenger": {"stage": "s2"}, "messenger": {}}


def wrapped(id="ma_rtfm", options=DEADLY, **more):
    return PettingZooWrapper(for_tensors(mg.make(id, **options), dead="padded", **more))


@pytest.mark.parametrize("flatten", [False, True])
@pytest.mark.parametrize("mask", ["info", "observation"])
def test_the_wrapper_takes_the_env(mask, flatten):
    env = wrapped(mask=mask, flatten=flatten)
    check_env_specs(env)
    played = env.rollout(200, break_when_any_done=False)
    assert played["next", "done"].sum() > 5
    if not (flatten and mask == "observation"):  # there the mask lies in the Box
        legal = played["agent", "action_mask"].gather(-1, played["agent", "action"].unsqueeze(-1))
        assert legal.all()
        assert not played["next", "agent", "info", "illegal"].any()


@pytest.mark.parametrize("id", WORLDS)
def test_the_batch_is_a_torchrl_env(id):
    env = BatchedEnv(mg.make_vec(id, 5, **WORLDS[id]))
    check_env_specs(env)
    played = env.rollout(60, break_when_any_done=False)
    assert played.shape == (5, 60)
    assert played["next", "done"].any()
    env.close()


def test_a_row_of_the_batch_plays_what_the_wrapper_plays():
    batch = BatchedEnv(mg.make_vec("ma_rtfm", 4, **DEADLY), seed=7)
    singles = [wrapped(flatten=True) for _ in range(4)]
    assert batch.layout == singles[0].layout
    shown = batch.reset()
    alone = [env.reset(seed=7 + row) for row, env in enumerate(singles)]
    ends = 0
    generator = torch.Generator().manual_seed(0)
    for _ in range(150):
        for row, one in enumerate(alone):
            assert torch.equal(one["agent", "observation"], shown["agent", "observation"][row])
            assert torch.equal(one["agent", "action_mask"], shown["agent", "action_mask"][row])
        weights = shown["agent", "action_mask"].float().flatten(0, 1)
        shown["agent", "action"] = torch.multinomial(weights, 1, generator=generator).reshape(4, 3)
        stepped, shown = batch.step_and_maybe_reset(shown)
        for row, env in enumerate(singles):
            alone[row]["agent", "action"] = stepped["agent", "action"][row]
            one, alone[row] = env.step_and_maybe_reset(alone[row])
            mine, theirs = stepped["next"][row], one["next"]
            assert torch.equal(theirs["agent", "observation"], mine["agent", "observation"])
            for name in ("reward", "done", "terminated", "truncated", ("info", "won"), ("info", "illegal")):
                assert torch.equal(theirs["agent"][name], mine["agent"][name]), name
            for name in ("done", "terminated", "truncated"):
                assert torch.equal(theirs[name], mine[name])
            ends += int(theirs["done"])
    assert ends > 20


def test_a_game_that_goes_on_cannot_be_reset_alone():
    env = BatchedEnv(mg.make_vec("ma_rtfm", 3, **DEADLY))
    shown = env.reset()
    shown["_reset"] = torch.tensor([[True], [False], [False]])
    with pytest.raises(ConfigurationError):
        env.reset(shown)


def test_the_same_seed_is_the_same_rollout():
    def play():
        env = BatchedEnv(mg.make_vec("ma_rtfm", 3, **DEADLY))
        env.set_seed(3)
        torch.manual_seed(0)
        return env.rollout(40, break_when_any_done=False)

    assert (play() == play()).all()

"""check_parallel_env lets a good environment pass, and each of its checks catches one that breaks its rule."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
import pytest

from magrounding.envs.checks import ConformanceError, check_parallel_env
from magrounding.envs.parallel import WorldEnv
from magrounding.errors import ConfigurationError
from magrounding.spec import EXPERT, SCORE, SCORES, STEP
from tests.envs.toy_world import ToyWorld

_unique = count()


class Toy(WorldEnv):
    """A good environment; the broken ones below spoil one thing each."""

    def __init__(self) -> None:
        super().__init__(ToyWorld(agents=2, max_cycles=12), "toy", {})


class PlaysOnAfterClose(Toy):
    def close(self):
        self.agents = []


class KeepsTheDead(Toy):
    def step(self, actions):
        acting = self.agents
        result = super().step(actions)
        if len(result[0]) and not self.agents:
            self.agents = acting
        return result


class PlaysOnAfterTheEnd(Toy):
    def step(self, actions):
        if not self.agents:
            return {}, {}, {}, {}, {}
        return super().step(actions)


class Spoils(Toy):
    """Passes what comes out of every step through `spoil(agent, observation, info)`."""

    @staticmethod
    def spoil(agent: str, observation: dict[str, Any], info: dict[str, Any]) -> None:
        raise NotImplementedError

    def reset(self, seed=None, options=None):
        observations, infos = super().reset(seed, options)
        for agent in observations:
            self.spoil(agent, observations[agent], infos[agent])
        return observations, infos

    def step(self, actions):
        observations, *flags, infos = super().step(actions)
        for agent in observations:
            self.spoil(agent, observations[agent], infos[agent])
        return observations, *flags, infos


def spoiler(spoil: Callable[[str, dict[str, Any], dict[str, Any]], Any]) -> type[Spoils]:
    return type("Spoiler", (Spoils,), {"spoil": staticmethod(spoil)})


def rewarding(change: Callable[[float], Any]) -> type[Toy]:
    class Rewarding(Toy):
        def step(self, actions):
            observations, rewards, *rest = super().step(actions)
            return observations, {agent: change(reward) for agent, reward in rewards.items()}, *rest

    return Rewarding


class NumbersForFlags(Toy):
    def step(self, actions):
        observations, rewards, terminations, *rest = super().step(actions)
        return observations, rewards, {agent: int(flag) for agent, flag in terminations.items()}, *rest


class StateOutside(Toy):
    def state(self):
        return super().state() - 5


class ObeysMaskedActions(Toy):
    """A masked action moves the agent the other way."""

    def _advance(self, chosen):
        masks = self.world.observation["action_mask"][0]
        masked = {agent: not masks[self._index[agent], a] for agent, a in zip(self.agents, chosen, strict=True)}
        turned = [(0, 2, 1, 4, 3)[a] if wrong else a for a, wrong in zip(chosen, masked.values(), strict=True)]
        result = super()._advance(turned)
        for agent, info in result[4].items():
            if masked[agent]:
                info["illegal"] = True
        return result


class PlaysByItsOwnDice(Toy):
    def step(self, actions):
        result = super().step(actions)
        return (result[0], {agent: reward + next(_unique) for agent, reward in result[1].items()}, *result[2:])


class IgnoresSeeds(Toy):
    def reset(self, seed=None, options=None):
        return super().reset(None if seed is None else 5, options)


class RepeatsItself(Toy):
    def reset(self, seed=None, options=None):
        self.seed = self.seed if seed is None else seed
        return super().reset(self.seed, options)


class GoesOnByPlay(Toy):
    """How many steps were played decides which episode is next."""

    def reset(self, seed=None, options=None):
        if seed is None:
            self.world.episode += int(self.world.out.length[0])
        return super().reset(seed, options)


class ForgetsWhenPickled(Toy):
    def __getstate__(self):
        return {**vars(self), "world": copy.deepcopy(self.world)}

    def __setstate__(self, state):
        vars(self).update(state)
        self.world.flag, self.world.pit = self.world.pit, self.world.flag
        self.world._observe()


class TakesAnyAction(Toy):
    def step(self, actions):
        return super().step({agent: max(0, action or 0) if action != "up" else 0 for agent, action in actions.items()})


class RenderingPlays(Toy):
    def render(self):
        self.world.out.length[:] += 1
        return super().render()


_INVENTORY = np.zeros(1, np.int16)


def _turn_a_shared_inventory(agent: str, observation: dict[str, Any], info: dict[str, Any]) -> None:
    _INVENTORY[:] = (_INVENTORY + 1) % 5
    observation["inventory"] = _INVENTORY


def specified(**changes: Any) -> type[Toy]:
    """The toy with another spec, which it may not keep."""

    class Specified(Toy):
        def __init__(self):
            super().__init__()
            self.spec = replace(self.spec, **changes)

    return Specified


class Expert(Toy):
    """Labels every legal action."""

    def __init__(self):
        super().__init__()
        self.spec = replace(self.spec, capabilities=self.spec.capabilities | {EXPERT})

    def best_actions(self):
        return self.world.observation["action_mask"][0] != 0


class ExpertOfMaskedActions(Expert):
    def best_actions(self):
        return np.ones((2, 5), np.bool_)


class Scored(Toy):
    """A game of points: nobody wins."""

    def __init__(self):
        super().__init__()
        self.spec = replace(self.spec, outcome=SCORE, capabilities=self.spec.capabilities | {SCORES})

    def step(self, actions):
        result = super().step(actions)
        for info in result[4].values():
            info.pop("won", None)
        return result


class RewritesTheManual(Toy):
    """In every step the manual is another, the same for all."""

    def _observations(self):
        self.world.observation["manual"][0, 0, 0] = 1 + self.world.out.length[0] % 5
        return super()._observations()


class ShowsEachItsOwnGoal(Toy):
    def _observations(self):
        observations = super()._observations()
        for k, observation in enumerate(observations.values()):
            observation["goal"][0] = k
        return observations


BROKEN = [
    ("agents", specified(num_agents=3)),
    ("pettingzoo", KeepsTheDead),
    ("spaces", specified(state_parts=(("grid", (5, 5)),))),
    ("end", PlaysOnAfterTheEnd),
    ("observations", spoiler(lambda agent, observation, info: observation.update(goal=np.full(3, 99, np.int16)))),
    ("masks", spoiler(lambda agent, observation, info: info["action_mask"].fill(1))),
    ("infos", spoiler(lambda agent, observation, info: info.pop("text"))),
    ("infos", spoiler(lambda agent, observation, info: info.pop("won", None))),
    ("state", StateOutside),
    ("rewards", rewarding(lambda reward: float("nan"))),
    ("flags", NumbersForFlags),
    ("illegal", ObeysMaskedActions),
    ("illegal", spoiler(lambda agent, observation, info: info.update(illegal=True))),
    ("determinism", PlaysByItsOwnDice),
    ("ownership", spoiler(_turn_a_shared_inventory)),
    ("seeds", IgnoresSeeds),
    ("going on", RepeatsItself),
    ("going on", GoesOnByPlay),
    ("copies", ForgetsWhenPickled),
    ("bad actions", TakesAnyAction),
    ("shared", ShowsEachItsOwnGoal),
    ("texts", RewritesTheManual),
    ("expert", ExpertOfMaskedActions),
    ("rendering", RenderingPlays),
    ("close", PlaysOnAfterClose),
]


def test_a_good_env_passes_as_factory_and_as_env():
    check_parallel_env(Toy)
    env = Toy()
    check_parallel_env(env)
    assert env.agents == [], "the env itself has not been played"


@pytest.mark.parametrize(("check", "make"), BROKEN, ids=[f"{c}-{m.__name__}-{i}" for i, (c, m) in enumerate(BROKEN)])
def test_a_broken_env_is_caught(check, make):
    with pytest.raises(ConformanceError) as error:
        check_parallel_env(make, seeds=range(4), max_steps=200)
    assert error.value.check == check


def test_an_episode_that_does_not_end_is_caught():
    with pytest.raises(ConformanceError) as error:
        check_parallel_env(Toy, max_steps=3)
    assert error.value.check == "end"


class MayRewriteTheManual(RewritesTheManual):
    def __init__(self):
        super().__init__()
        fields = (replace(f, lifetime=STEP) if f.name == "manual" else f for f in self.spec.fields)
        self.spec = replace(self.spec, fields=tuple(fields))


@pytest.mark.parametrize("make", [Expert, Scored, MayRewriteTheManual])
def test_what_the_spec_does_not_promise_is_not_asked_for(make):
    check_parallel_env(make)


@pytest.mark.parametrize(
    "missing",
    [("position", "inventory", "manual"), ("state", "scene"), ("action_mask",), ("grid", "position")],
    ids=str,
)
def test_worlds_without_some_fields_and_capabilities(missing):
    world = ToyWorld(2, max_cycles=12, without=missing, egocentric=True)
    check_parallel_env(WorldEnv(world, "toy", {}))


@pytest.mark.parametrize(("make", "option"), [(RepeatsItself, "going_on"), (ForgetsWhenPickled, "copies")])
def test_two_promises_can_be_left_out(make, option):
    check_parallel_env(make, **{option: False})


class Unspecified(Toy):
    def __init__(self):
        super().__init__()
        self.spec = None


def test_an_env_without_a_spec_and_one_seed_cannot_be_checked():
    with pytest.raises(ConfigurationError):
        check_parallel_env(Unspecified)
    with pytest.raises(ValueError):
        check_parallel_env(Toy, seeds=(1,))

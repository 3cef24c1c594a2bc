"""check_parallel_env lets a good environment pass, and each of its checks catches one that breaks its rule."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from magrounding.envs.checks import ConformanceError, check_parallel_env
from magrounding.envs.parallel import WorldEnv
from magrounding.errors import CallOrderError, ConfigurationError, InvalidAction, MagroundingError
from magrounding.spec import EXPERT, SCORE, SCORES, STEP, EnvSpec, Field, FixedActions, Mask
from tests.envs.toy_world import ToyWorld

_unique = count()


class Toy(WorldEnv):
    """A good environment; the broken ones below spoil one thing each."""

    def __init__(self) -> None:
        super().__init__(ToyWorld(agents=2, max_cycles=12), "toy", {})


class PlaysOnAfterClose(Toy):
    def close(self):
        self.agents = []


class RefusesInItsOwnWay(Toy):
    def reset(self, seed=None, options=None):
        if self._closed:
            raise RuntimeError("closed")
        return super().reset(seed, options)


class NamesTwice(Toy):
    def __init__(self):
        super().__init__()
        self.possible_agents = ["agent_0", "agent_0"]


class LosesAgentsAtReset(Toy):
    def reset(self, seed=None, options=None):
        result = super().reset(seed, options)
        self.agents = self.agents[1:]
        return result


class KeepsTheDead(Toy):
    def step(self, actions):
        acting = self.agents
        result = super().step(actions)
        if len(result[0]) and not self.agents:
            self.agents = acting
        return result


class Unnamed(Toy):
    def __init__(self):
        super().__init__()
        self.metadata = {"render_modes": []}


class MakesSpacesAnew(Toy):
    def action_space(self, agent):
        return spaces.Discrete(5)


class NoStateSpace(Toy):
    def __init__(self):
        super().__init__()
        del self.state_space


class ForgetsInfosAtReset(Toy):
    def reset(self, seed=None, options=None):
        return super().reset(seed, options)[0]


class ReturnsFour(Toy):
    def step(self, actions):
        return super().step(actions)[:4]


class NeverEnds(Toy):
    def reset(self, seed=None, options=None):
        self.world.max_cycles = 10**6
        super().reset(seed, options)
        self.world.pit = self.world.flag = np.array([0, 0])  # in the wall, where nobody comes
        self.world._observe()
        return self._observations(), self._infos()


class PlaysOnAfterTheEnd(Toy):
    def step(self, actions):
        if not self.agents:
            return {}, {}, {}, {}, {}
        return super().step(actions)


class SilentAfterTheEnd(Toy):
    def step(self, actions):
        if not self.agents:
            raise CallOrderError("over")
        return super().step(actions)


class SeesAsADead(Toy):
    def step(self, actions):
        result = super().step(actions)
        if not self.agents:
            for values in result:
                values.pop("agent_1", None)
        return result


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


class StateOfAnotherType(Toy):
    def state(self):
        return super().state().astype(np.int8)


class NeverFlagsIllegal(Toy):
    def step(self, actions):
        result = super().step(actions)
        for info in result[4].values():
            info.pop("illegal", None)
        return result


class ObeysMaskedActions(Toy):
    """A masked action moves the agent the other way."""

    def _chosen(self, actions):
        chosen = dict(zip(self.agents, super()._chosen(actions) or (), strict=True))
        masks = self.world.observation["action_mask"][0]
        self.masked = {agent: not masks[self._index[agent], a] for agent, a in chosen.items()}
        return [(0, 2, 1, 4, 3)[a] if self.masked[agent] else a for agent, a in chosen.items()] or None

    def step(self, actions):
        result = super().step(actions)
        for agent, info in result[4].items():
            if self.masked[agent]:
                info["illegal"] = True
        return result


class PlaysByItsOwnDice(Toy):
    def step(self, actions):
        result = super().step(actions)
        return (result[0], {agent: reward + next(_unique) for agent, reward in result[1].items()}, *result[2:])


class RemembersEpisodes(Toy):
    """The second time a seed is played, the reward is another."""

    seen = 0

    def reset(self, seed=None, options=None):
        self.seen += 1
        return super().reset(seed, options)

    def step(self, actions):
        result = super().step(actions)
        return (result[0], {agent: reward + self.seen for agent, reward in result[1].items()}, *result[2:])


class HasHiddenState(Toy):
    """Every env has another state."""

    def __init__(self):
        super().__init__()
        self.mark = next(_unique) % 5

    def state(self):
        state = super().state()
        state[0] = self.mark
        return state


class LendsItsBuffers(Toy):
    """What the caller does to the manual appears in the manual."""

    def _observations(self):
        observations = super()._observations()
        for observation in observations.values():
            observation["manual"] = self.world.observation["manual"][0]
        return observations

    def _infos(self):
        self.world._observe = lambda: None
        return super()._infos()

    def step(self, actions):
        manual = self.world.observation["manual"].copy()
        del self.world._observe
        observe = self.world._observe

        def keep_the_manual():
            observe()
            self.world.observation["manual"][:] = manual

        self.world._observe = keep_the_manual
        return super().step(actions)

    def reset(self, seed=None, options=None):
        self.world.__dict__.pop("_observe", None)
        return super().reset(seed, options)


class ReusesItsState(Toy):
    def __init__(self):
        super().__init__()
        self.shown = np.zeros(self.state_space.shape, np.int16)

    def state(self):
        self.shown[:] = super().state()
        return self.shown


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


class ActsBeforeItRefuses(Toy):
    def step(self, actions):
        acting = self.agents
        try:
            return super().step(actions)
        except InvalidAction:
            if acting:
                super().step(dict.fromkeys(acting, 4))
            raise


class RendersNothing(Toy):
    def render(self):
        return "" if self.render_mode == "ansi" else super().render()


class RendersFloats(Toy):
    def render(self):
        picture = super().render()
        return picture if isinstance(picture, str) else picture / 255


class PicturesGrow(Toy):
    def render(self):
        picture = super().render()
        return picture if isinstance(picture, str) else picture[: 800 + int(self.world.out.length[0])]


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


class ExpertWithNumbers(Expert):
    def best_actions(self):
        return super().best_actions().astype(np.int8)


class ExpertForOne(Expert):
    def best_actions(self):
        return super().best_actions()[:1]


class ExpertOfMaskedActions(Expert):
    def best_actions(self):
        return np.ones((2, 5), np.bool_)


class ExpertThatForgets(Expert):
    """It remembers in how many steps it was asked, and its copy does not."""

    def __init__(self):
        super().__init__()
        self.asked = set()

    def best_actions(self):
        self.asked.add(int(self.world.out.length[0]))
        best = super().best_actions()
        best[:, 1:] &= len(self.asked) <= int(self.world.out.length[0])
        return best

    def reset(self, seed=None, options=None):
        self.asked = set()
        return super().reset(seed, options)

    def __getstate__(self):
        return {**super().__getstate__(), "asked": set()}


class ExpertThatPlays(Expert):
    def best_actions(self):
        best = super().best_actions()
        self.world.step(np.array([[4, 4]]), False)
        return best


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


class Scoreless(Scored):
    def step(self, actions):
        result = super().step(actions)
        for info in result[4].values():
            info.pop("score", None)
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


def _set(key: str, value: Any) -> Callable[..., None]:
    return lambda agent, observation, info: observation.update({key: value})


BROKEN = [
    ("agents", NamesTwice),
    ("agents", LosesAgentsAtReset),
    ("agents", KeepsTheDead),
    ("metadata", Unnamed),
    ("spaces", MakesSpacesAnew),
    ("spaces", NoStateSpace),
    ("reset", ForgetsInfosAtReset),
    ("step", ReturnsFour),
    ("end", NeverEnds),
    ("end", PlaysOnAfterTheEnd),
    ("end", SilentAfterTheEnd),
    ("keys", SeesAsADead),
    ("observations", spoiler(lambda agent, observation, info: observation.pop("goal"))),
    ("observations", spoiler(_set("goal", [1, 2, 3]))),
    ("observations", spoiler(_set("goal", np.zeros(3, np.int64)))),
    ("observations", spoiler(_set("goal", np.zeros(4, np.int16)))),
    ("observations", spoiler(_set("goal", np.full(3, 99, np.int16)))),
    ("observations", spoiler(_set("distance", np.full((5, 5, 2), np.nan, np.float32)))),
    (
        "masks",
        spoiler(lambda agent, observation, info: (observation["action_mask"].fill(0), info["action_mask"].fill(0))),
    ),
    ("masks", spoiler(lambda agent, observation, info: info["action_mask"].fill(1))),
    ("masks", spoiler(lambda agent, observation, info: info.pop("action_mask"))),
    ("infos", spoiler(lambda agent, observation, info: info.pop("text"))),
    ("infos", spoiler(lambda agent, observation, info: info.pop("won", None))),
    ("state", StateOutside),
    ("state", StateOfAnotherType),
    ("rewards", rewarding(int)),
    ("rewards", rewarding(lambda reward: float("nan"))),
    ("flags", NumbersForFlags),
    ("illegal", NeverFlagsIllegal),
    ("illegal", ObeysMaskedActions),
    ("illegal", spoiler(lambda agent, observation, info: info.update(illegal=True))),
    ("determinism", PlaysByItsOwnDice),
    ("determinism", RemembersEpisodes),
    ("determinism", HasHiddenState),
    ("ownership", LendsItsBuffers),
    ("ownership", ReusesItsState),
    ("ownership", spoiler(_turn_a_shared_inventory)),
    ("seeds", IgnoresSeeds),
    ("going on", RepeatsItself),
    ("going on", GoesOnByPlay),
    ("copies", ForgetsWhenPickled),
    ("copies", ExpertThatForgets),
    ("bad actions", TakesAnyAction),
    ("bad actions", ActsBeforeItRefuses),
    ("agents", specified(num_agents=3)),
    ("spaces", specified(actions=FixedActions(("stay", "go")))),
    ("spaces", specified(fields=(Field("compass", (2,), 0, 3), Mask("action_mask", (5,))))),
    ("spaces", specified(fields=(Field("goal", (4,), 0, 9), Mask("action_mask", (5,))))),
    ("spaces", specified(state_parts=(("grid", (5, 5)),))),
    ("shared", ShowsEachItsOwnGoal),
    ("texts", RewritesTheManual),
    ("expert", ExpertWithNumbers),
    ("expert", ExpertForOne),
    ("expert", ExpertOfMaskedActions),
    ("expert", ExpertThatPlays),
    ("infos", Scoreless),
    ("rendering", RendersNothing),
    ("rendering", RendersFloats),
    ("rendering", PicturesGrow),
    ("rendering", RenderingPlays),
    ("close", PlaysOnAfterClose),
    ("close", RefusesInItsOwnWay),
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
    assert str(error.value).startswith(f"{check}: ")
    assert "\n" not in str(error.value)


class Silent(Toy):
    """No texts, so nothing to say of them in infos."""

    def __init__(self):
        WorldEnv.__init__(self, ToyWorld(max_cycles=12, without=("manual", "goal")), "toy", {})

    def _infos(self):
        infos = super()._infos()
        for info in infos.values():
            del info["text"], info["document"]
        return infos


class MayRewriteTheManual(RewritesTheManual):
    def __init__(self):
        super().__init__()
        fields = (replace(f, lifetime=STEP) if f.name == "manual" else f for f in self.spec.fields)
        self.spec = replace(self.spec, fields=tuple(fields))


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda agent, observation, info: info.pop("action_mask"), "masks: infos of agent_0 lack 'action_mask'"),
        (lambda agent, observation, info: info.pop("won", None), "'won' in infos of agent_0 is None at the end"),
        (
            lambda agent, observation, info: info.update(won=np.True_),
            r"'won' in infos of agent_0 is np\.True_ at the end, not a bool",
        ),
    ],
)
def test_what_infos_lack_is_told_from_what_is_wrong_in_them(spoil, sentence):
    with pytest.raises(ConformanceError, match=sentence):
        check_parallel_env(spoiler(spoil))


@pytest.mark.parametrize("make", [Expert, Scored, Silent, MayRewriteTheManual])
def test_what_the_spec_does_not_promise_is_not_asked_for(make):
    check_parallel_env(make)


@pytest.mark.parametrize(
    "missing",
    [("position", "inventory", "manual"), ("state", "scene"), ("action_mask",), ("grid", "position")],
    ids=str,
)
@pytest.mark.parametrize("agents", [1, 2])
def test_worlds_without_some_fields_and_capabilities(agents, missing):
    world = ToyWorld(agents, max_cycles=12, without=missing, egocentric=True)
    check_parallel_env(WorldEnv(world, "toy", {}))


@pytest.mark.parametrize(
    ("make", "check", "option"), [(RepeatsItself, "going on", "going_on"), (ForgetsWhenPickled, "copies", "copies")]
)
def test_two_promises_can_be_left_out(make, check, option):
    with pytest.raises(ConformanceError, match=check):
        check_parallel_env(make)
    check_parallel_env(make, **{option: False})


@pytest.mark.parametrize("spec", [None, EnvSpec, "a spec"])
def test_an_env_without_a_spec_cannot_be_checked(spec):
    class Unspecified(Toy):
        def __init__(self):
            super().__init__()
            self.spec = spec

    with pytest.raises(ConfigurationError, match=r"Unspecified\.spec is .*EnvSpec") as error:
        check_parallel_env(Unspecified)
    assert "\n" not in str(error.value)


def test_errors_can_be_pickled_and_are_ours():
    error = pickle.loads(pickle.dumps(ConformanceError("masks", "none")))
    assert isinstance(error, MagroundingError)
    assert (error.check, str(error)) == ("masks", "masks: none")


def test_one_seed_is_too_few():
    with pytest.raises(ValueError, match="two"):
        check_parallel_env(Toy, seeds=(1,))

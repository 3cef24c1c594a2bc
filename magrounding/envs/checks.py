"""check_parallel_env: does an environment keep every promise that learners and tools rely on?

PettingZoo's own tests compare one step of two games, and let observations outside their space and masked actions pass.
This check plays whole episodes, several times over, and compares everything that comes out.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from gymnasium import spaces
from pettingzoo import ParallelEnv

from magrounding.errors import MagroundingError

Actions = dict[str, int]


class ConformanceError(MagroundingError, AssertionError):
    """An environment breaks a rule; the sentence begins with the name of the check.

    Attributes:
        check: that name.
    """

    def __init__(self, check: str, message: str) -> None:
        super().__init__(check, message)  # both, so that it can be pickled
        self.check = check

    def __str__(self) -> str:
        return "{}: {}".format(*self.args)


@dataclass
class Episode:
    """Everything that a game has given out, and the actions that made it do so.

    Attributes:
        actions: of each step.
        results: of `reset` (observations, infos) and of each step (the five dicts), as they were when they came.
        states: after each of them.
    """

    actions: list[Actions] = field(default_factory=list)
    results: list[tuple[dict[str, Any], ...]] = field(default_factory=list)
    states: list[np.ndarray] = field(default_factory=list)


def check_parallel_env(
    make: Callable[[], ParallelEnv] | ParallelEnv,
    *,
    seeds: Sequence[int] = (0, 1, 2),
    max_steps: int = 5000,
    noop: int | None = 0,
    render: bool = True,
) -> None:
    """Check a ParallelEnv against PettingZoo's interface and ours.

    It plays a whole episode of each seed, mostly with legal actions, and checks the names of agents, the keys of every
    dict, observations and state against their spaces, masks, rewards and flags; then plays it again, in the same env,
    in a fresh one, from a pickle taken in the middle, and with every array that it was given scribbled over.

    Args:
        make: makes an env; or an env, which is copied first.
        seeds: at least two.
        max_steps: an episode must end within them.
        noop: the action that a masked action is the same as; None to check only that it is flagged.
        render: check every render mode too.

    Raises:
        ConformanceError: the first rule that is broken, in one sentence.
        ValueError: fewer than two seeds.
    """
    if len(seeds) < 2:
        raise ValueError(f"two episodes or more are compared, got seeds {list(seeds)}")
    if isinstance(make, ParallelEnv):
        make = _copier(make)
    env = make()
    _check_declarations(env)
    episodes = []
    for seed in seeds:
        episode = _play_and_check(env, seed, max_steps)
        _check_end(env, episode)
        episodes.append(episode)
    for seed, episode in zip(seeds, episodes, strict=True):
        _compare("determinism", f"seed {seed} again in the same env", _replay(env, seed, episode), episode)
        _compare("determinism", f"seed {seed} in a fresh env", _replay(make(), seed, episode), episode)
        _compare(
            "ownership", "after the caller changed what it got", _replay(env, seed, episode, scribble=True), episode
        )
    _check_seeds(env, seeds, episodes)
    _check_going_on(env, seeds[0], episodes[0])
    for seed, episode in zip(seeds, episodes, strict=True):
        _check_copies(env, seed, episode)
        _check_bad_actions(env, seed, episode)
        _check_masked_actions(env, seed, episode, noop)
    if render:
        _check_rendering(make, seeds[0], episodes[0])
    env.close()


def _require(condition: bool, check: str, message: str) -> None:
    if not condition:
        raise ConformanceError(check, message)


def _copier(env: Any) -> Callable[[], ParallelEnv]:
    original = copy.deepcopy(env)
    return lambda: copy.deepcopy(original)


def _check_declarations(env: Any) -> None:
    agents = env.possible_agents
    _require(len(agents) > 0 and len(set(agents)) == len(agents), "agents", f"possible_agents is {agents}")
    for key in ("name", "render_modes"):
        _require(key in env.metadata, "metadata", f"metadata lacks {key!r}")
    for agent in agents:
        observation, action = env.observation_space(agent), env.action_space(agent)
        same = observation is env.observation_space(agent) and action is env.action_space(agent)
        _require(same, "spaces", f"each call gives {agent} another space object")
        _require(
            isinstance(action, spaces.Discrete), "spaces", f"the action space of {agent} is {action}, not Discrete"
        )
        _require(
            isinstance(observation, spaces.Dict) and "action_mask" in observation.spaces,
            "spaces",
            f"the observation space of {agent} is no Dict with an action_mask",
        )
    _require(isinstance(getattr(env, "state_space", None), spaces.Box), "spaces", "state_space is missing, or no Box")


def _play_and_check(env: Any, seed: int, max_steps: int) -> Episode:
    """Play an episode, check each step by itself, and keep everything."""
    rng = np.random.default_rng(seed)
    episode = Episode()
    result = env.reset(seed=seed)
    _require(isinstance(result, tuple) and len(result) == 2, "reset", "reset() does not return (observations, infos)")
    _require(list(env.agents) == list(env.possible_agents), "agents", f"after reset, agents are {env.agents}")
    acting = list(env.agents)
    _check_step(env, acting, result)
    _record(env, episode, result)
    while env.agents:
        _require(
            len(episode.actions) < max_steps, "end", f"the episode of seed {seed} has not ended in {max_steps} steps"
        )
        actions = {agent: _draw(rng, result[0][agent]["action_mask"]) for agent in env.agents}
        acting = list(env.agents)
        kept, state = result, env.state()
        result = env.step(dict(actions))
        _require(isinstance(result, tuple) and len(result) == 5, "step", "step() does not return five dicts")
        _check_step(env, acting, result)
        _check_flags(env, acting, result)
        illegal = [agent for agent in acting if not episode.results[-1][0][agent]["action_mask"][actions[agent]]]
        for agent in acting:
            flagged = bool(result[4][agent].get("illegal", False))
            _require(
                flagged == (agent in illegal),
                "illegal",
                f"{agent} played {actions[agent]}, its mask makes illegal {agent in illegal}, its infos say {flagged}",
            )
        episode.actions.append(actions)
        _record(env, episode, result)
        where = _difference(dict(enumerate(kept)), dict(enumerate(episode.results[-2])))
        lasts = not where and np.array_equal(state, episode.states[-2])
        _require(lasts, "ownership", "a step overwrites the arrays that the step before has returned")
    return episode


def _draw(rng: np.random.Generator, mask: np.ndarray) -> int:
    """Mostly a legal action, at times any."""
    if rng.random() < 0.15:
        return int(rng.integers(len(mask)))
    return int(rng.choice(np.flatnonzero(mask)))


def _record(env: Any, episode: Episode, result: tuple[dict[str, Any], ...]) -> None:
    episode.results.append(copy.deepcopy(result))
    episode.states.append(env.state().copy())


def _check_step(env: Any, acting: list[str], result: tuple[dict[str, Any], ...]) -> None:
    names = ("observations", "infos") if len(result) == 2 else _STEP_NAMES
    for name, values in zip(names, result, strict=True):
        _require(isinstance(values, dict), "keys", f"{name} is a {type(values).__name__}, not a dict")
        _require(list(values) == acting, "keys", f"{name} is for {list(values)}, but {acting} acted")
    observations, infos = result[0], result[-1]
    for agent in acting:
        _check_observation(agent, observations[agent], env.observation_space(agent))
        _check_mask(agent, observations[agent], infos[agent], env.action_space(agent))
        for key in ("text", "document"):
            _require(key in infos[agent], "infos", f"infos of {agent} lack {key!r}")
    state, space = env.state(), env.state_space
    _require(
        isinstance(state, np.ndarray) and state.dtype == space.dtype and space.contains(state),
        "state",
        f"state() is outside state_space {space}",
    )


def _check_observation(agent: str, observation: Any, space: spaces.Dict) -> None:
    _require(
        isinstance(observation, dict) and set(observation) == set(space.spaces),
        "observations",
        f"{agent} sees {sorted(observation)}, its space has {sorted(space.spaces)}",
    )
    for key, part in space.spaces.items():
        value = observation[key]
        where = f"{key} of {agent}"
        _require(isinstance(value, np.ndarray), "observations", f"{where} is a {type(value).__name__}, not an array")
        _require(value.dtype == part.dtype, "observations", f"{where} has dtype {value.dtype}, its space {part.dtype}")
        _require(value.shape == part.shape, "observations", f"{where} has shape {value.shape}, its space {part.shape}")
        bounds = f"values of {where} lie in [{value.min()}, {value.max()}]" if value.size else where
        _require(part.contains(value), "observations", f"{bounds}, outside {part}")


def _check_mask(agent: str, observation: dict[str, Any], info: dict[str, Any], space: spaces.Discrete) -> None:
    mask = observation["action_mask"]
    _require(mask.dtype == np.int8 and mask.shape == (space.n,), "masks", f"the mask of {agent} is no [{space.n}] int8")
    _require(bool(mask.any()), "masks", f"the mask of {agent} leaves no action")
    _require(bool(np.isin(mask, (0, 1)).all()), "masks", f"the mask of {agent} has other values than 0 and 1")
    same = "action_mask" in info and np.array_equal(info["action_mask"], mask)
    _require(same, "masks", f"the masks of {agent} in observations and infos differ")


def _check_flags(env: Any, acting: list[str], result: tuple[dict[str, Any], ...]) -> None:
    _, rewards, terminations, truncations, infos = result
    for agent in acting:
        reward = rewards[agent]
        good = isinstance(reward, float | np.floating) and bool(np.isfinite(reward))
        _require(good, "rewards", f"the reward of {agent} is {reward!r}, not a finite float")
        for name, flags in (("terminations", terminations), ("truncations", truncations)):
            _require(
                isinstance(flags[agent], bool | np.bool_), "flags", f"{name} of {agent} is {flags[agent]!r}, not a bool"
            )
    living = [agent for agent in acting if not (terminations[agent] or truncations[agent])]
    _require(list(env.agents) == living, "agents", f"agents are {env.agents}, but {living} have neither flag")
    if not living:
        for agent in acting:
            _require(isinstance(infos[agent].get("won"), bool), "infos", f"infos of {agent} lack 'won' at the end")


_STEP_NAMES = ("observations", "rewards", "terminations", "truncations", "infos")


def _check_end(env: Any, episode: Episode) -> None:
    """After the end: nothing for nobody, and no more actions."""
    try:
        nothing = env.step({})
    except Exception as error:
        raise ConformanceError("end", f"step({{}}) after the end raises {error!r}") from error
    _require(nothing == ({}, {}, {}, {}, {}), "end", "step({}) after the end does not return five empty dicts")
    _require(_refuses(env, episode.actions[-1]), "end", "step() after the end accepts actions")


def _replay(env: Any, seed: int | None, episode: Episode, start: int = 0, *, scribble: bool = False) -> Episode:
    """Play the actions of an episode again from step `start` on; with a seed, after a reset."""
    again = Episode()
    if seed is not None:
        result = env.reset(seed=seed)
        _record(env, again, result)
        if scribble:
            _scribble(result)
    for actions in episode.actions[start:]:
        if list(env.agents) != list(actions):
            break  # it has gone another way; the comparison will say where
        result = env.step(dict(actions))
        again.actions.append(actions)
        _record(env, again, result)
        if scribble:
            _scribble(result)
    return again


def _scribble(value: Any) -> None:
    """Overwrite everything that can be."""
    if isinstance(value, np.ndarray):
        value.fill(99)
    elif isinstance(value, dict):
        for part in value.values():
            _scribble(part)
        value.clear()
    elif isinstance(value, tuple):
        for part in value:
            _scribble(part)
    elif isinstance(value, list):
        value.clear()


def _compare(check: str, how: str, again: Episode, episode: Episode, start: int = 0) -> None:
    results, states = episode.results[start:], episode.states[start:]
    for step, (a, b) in enumerate(zip(again.results, results, strict=False), start):
        names = ("observations", "infos") if len(b) == 2 else _STEP_NAMES
        where = next(
            (f"{name}{path}" for name, x, y in zip(names, a, b, strict=True) if (path := _difference(x, y))), ""
        )
        _require(not where, check, f"{how}, {where} of step {step} differs")
    for step, (a, b) in enumerate(zip(again.states, states, strict=False), start):
        _require(np.array_equal(a, b), check, f"{how}, state() after step {step} differs")
    _require(len(again.results) == len(results), check, f"{how}, the episode has another length")


def _difference(a: Any, b: Any) -> str:
    """Where two nested values differ, as a path; "" where they do not, "." for the values themselves."""
    if isinstance(b, np.ndarray):
        return "" if isinstance(a, np.ndarray) and a.dtype == b.dtype and np.array_equal(a, b) else "."
    if isinstance(b, Mapping):
        if not isinstance(a, Mapping) or list(a) != list(b):
            return "."
        return next((f"[{key!r}]{path}" for key in b if (path := _difference(a[key], b[key]))), "")
    return "" if type(a) is type(b) and a == b else "."


def _check_seeds(env: Any, seeds: Sequence[int], episodes: list[Episode]) -> None:
    first = episodes[0].results[0][0]
    differ = any(_difference(episode.results[0][0], first) for episode in episodes[1:])
    _require(differ, "seeds", f"seeds {list(seeds)} all begin with the same observations")


def _check_going_on(env: Any, seed: int, episode: Episode) -> None:
    """Without a seed, reset() goes on to the next episode: another one, and always the same, whatever was played."""
    env.reset(seed=seed)
    following = [env.reset() for _ in range(3)]
    differ = any(_difference(result[0], episode.results[0][0]) for result in following)
    _require(differ, "going on", "reset() without a seed begins the same episode again")
    _replay(env, seed, episode)
    for k, expected in enumerate(following, 1):
        where = _difference(dict(enumerate(env.reset())), dict(enumerate(expected)))
        _require(not where, "going on", f"episode {k} of seed {seed} depends on how the one before was played")


def _check_copies(env: Any, seed: int, episode: Episode) -> None:
    """A pickle and a copy, made in the middle of an episode, go on as the env would have."""
    middle = len(episode.actions) // 2
    env.reset(seed=seed)
    for actions in episode.actions[:middle]:
        env.step(dict(actions))
    for how, twin in (("a pickle", pickle.loads(pickle.dumps(env))), ("a deepcopy", copy.deepcopy(env))):
        _require(list(twin.agents) == list(env.agents), "copies", f"{how} taken after step {middle} has other agents")
        state = np.array_equal(twin.state(), env.state())
        _require(state, "copies", f"{how} taken after step {middle} has another state")
        again = _replay(twin, None, episode, middle)
        _compare("copies", f"in {how} taken after step {middle}", again, episode, middle + 1)


def _refuses(env: Any, actions: Any) -> bool:
    try:
        env.step(actions)
    except Exception:  # whatever it raises, it has refused
        return True
    return False


def _check_bad_actions(env: Any, seed: int, episode: Episode) -> None:
    """Actions outside the space, missing and unknown agents are refused, and change nothing."""
    env.reset(seed=seed)
    good, agent = episode.actions[0], next(iter(episode.actions[0]))
    count = int(env.action_space(agent).n)
    bad = [{**good, agent: action} for action in (-1, count, 0.5, None, "up")]
    others = {name: action for name, action in good.items() if name != agent}
    for actions in (*bad, others, {**good, "nobody": 0}):
        _require(_refuses(env, actions), "bad actions", f"step({actions}) is accepted")
        same = np.array_equal(env.state(), episode.states[0]) and list(env.agents) == list(good)
        _require(same, "bad actions", f"step({actions}) is refused, but has changed the game")
    first = env.step(dict(good))
    where = _difference(dict(enumerate(first)), dict(enumerate(episode.results[1])))
    _require(not where, "bad actions", "after refused actions the game goes on in another way")


def _check_masked_actions(env: Any, seed: int, episode: Episode, noop: int | None) -> None:
    """A masked action is a no-op with a flag: the step it makes is the one that `noop` makes."""
    if noop is None:
        return
    env.reset(seed=seed)
    for actions, before in zip(episode.actions[:8], episode.results, strict=False):
        for agent in actions:
            mask = before[0][agent]["action_mask"]
            if mask[noop] and not mask.all():
                masked = int(np.flatnonzero(mask == 0)[0])
                twin, other = copy.deepcopy(env), copy.deepcopy(env)
                result, expected = twin.step({**actions, agent: masked}), other.step({**actions, agent: noop})
                flagged = result[4][agent].pop("illegal", False) is True
                _require(flagged, "illegal", f"{agent} played {masked}, which is masked, and infos do not say so")
                where = _difference(dict(enumerate(result)), dict(enumerate(expected)))
                same = not where and np.array_equal(twin.state(), other.state())
                _require(same, "illegal", f"masked action {masked} of {agent} is not the same as action {noop}")
        env.step(dict(actions))


def _check_rendering(make: Callable[[], Any], seed: int, episode: Episode) -> None:
    """Every mode shows every moment, in frames of one size, and looking changes nothing."""
    for mode in make().metadata["render_modes"]:
        env = make()
        env.render_mode = mode
        env.reset(seed=seed)
        frames = [env.render(), env.render()]
        _require(np.array_equal(*frames), "rendering", f"two looks at one moment differ in mode {mode!r}")
        for actions, expected in zip(episode.actions, episode.results[1:], strict=True):
            result = env.step(dict(actions))
            where = _difference(dict(enumerate(result)), dict(enumerate(expected)))
            _require(not where, "rendering", f"render() in mode {mode!r} changes the game")
            if len(frames) < 6 or not env.agents:
                frames.append(env.render())
        for frame in frames:
            if mode == "ansi":
                _require(isinstance(frame, str) and bool(frame), "rendering", "mode 'ansi' gives no text")
            elif mode == "rgb_array":
                good = isinstance(frame, np.ndarray) and frame.dtype == np.uint8 and frame.shape[2:] == (3,)
                _require(good, "rendering", "mode 'rgb_array' gives no picture [height, width, 3] uint8")
                _require(frame.shape == frames[0].shape, "rendering", "frames differ in size")
        env.close()

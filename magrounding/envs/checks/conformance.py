"""check_parallel_env: a check that an environment keeps every promise that learners and tools rely on.

PettingZoo's own tests compare one step of two games, and let observations outside their space and masked actions pass.
This check plays whole episodes, several times over, and compares everything that comes out.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from pettingzoo import ParallelEnv

from magrounding.envs.checks.capabilities import (
    check_copied_expert,
    check_expert,
    check_rendering,
    check_text_view,
)
from magrounding.envs.checks.episode import (
    ConformanceError,
    Episode,
    compare,
    difference,
    go_to,
    record,
    replay,
    require,
)
from magrounding.envs.checks.step import MASK, check_declarations, check_flags, check_illegal, check_step, check_texts
from magrounding.envs.game_env import GameEnv
from magrounding.errors import CallOrderError
from magrounding.spec import EXPERT, SCENE, STATE

COPIES: dict[str, Callable[[Any], Any]] = {
    "a pickle": lambda env: pickle.loads(pickle.dumps(env)),
    "a deepcopy": copy.deepcopy,
}


def check_parallel_env(
    make: Callable[[], ParallelEnv] | ParallelEnv,
    *,
    seeds: Sequence[int] = (0, 1, 2),
    max_steps: int = 5000,
    noop: int | None = 0,
    render: bool = True,
    going_on: bool = True,
    copies: bool = True,
) -> None:
    """Check a ParallelEnv against PettingZoo's interface, and against what its own `spec` says.

    It plays a whole episode of each seed, mostly with legal actions, and checks the names of agents, the keys of every
    dict, observations against their spaces, rewards and flags; then plays it again, in the same env, in a fresh one,
    from a pickle taken in the middle, and with every array that it was given scribbled over. In the end it closes the
    env, which must then refuse all calls with `magrounding.errors.CallOrderError`. Masks, texts, state,
    labels, score, pictures and `describe` are checked where the spec has them as fields, capabilities or outcome.

    Infos hold `action_mask` where observations do, `illegal` after an action that was masked, and in the last step
    `won` (a bool, where the spec's outcome is WON) and `score` (a float, where the spec has one). These are promises
    of this package's own environments; `vectorize` and training ask for fewer.

    Args:
        make: makes an env; or an env, which is copied first. `env.spec` is an EnvSpec.
        seeds: at least two.
        max_steps: an episode must end within them.
        noop: the action that a masked action is the same as; None to check only that it is flagged.
        render: check every render mode too.
        going_on: check that `reset()` without a seed begins the next episode of the last seed.
        copies: check that a pickle and a deepcopy go on as the env would, and so do their experts.

    Raises:
        ConformanceError: the first rule that is broken, in one sentence.
        ConfigurationError: an env whose `spec` is no EnvSpec.
        ValueError: fewer than two seeds.
    """
    if len(seeds) < 2:
        raise ValueError(f"two episodes or more are compared, got seeds {list(seeds)}")
    if isinstance(make, ParallelEnv):
        make = partial(copy.deepcopy, copy.deepcopy(make))
    env = make()
    spec = check_declarations(env)
    episodes = []
    for seed in seeds:
        episode = _play_and_check(env, seed, max_steps)
        _check_end(env, episode)
        episodes.append(episode)
    for seed, episode in zip(seeds, episodes, strict=True):
        compare("determinism", f"seed {seed} again in the same env", replay(env, seed, episode), episode)
        compare("determinism", f"seed {seed} in a fresh env", replay(make(), seed, episode), episode)
        scribbled = replay(env, seed, episode, scribble=True)
        compare("ownership", "after the caller changed what it got", scribbled, episode)
    first = episodes[0].results[0][0]
    differ = any(difference(episode.results[0][0], first) for episode in episodes[1:])
    require(differ, "seeds", f"seeds {list(seeds)} all begin with the same observations")
    if going_on:
        _check_going_on(env, seeds[0], episodes[0])
    for seed, episode in zip(seeds, episodes, strict=True):
        if copies:
            _check_copies(env, seed, episode)
        _check_bad_actions(env, seed, episode)
        if MASK in spec and noop is not None:
            _check_masked_actions(env, seed, episode, noop)
        if EXPERT in spec.capabilities:
            check_expert(env, seed, episode)
            if copies:
                check_copied_expert(env, seed, episode, COPIES)
        if isinstance(env, GameEnv):
            check_text_view(env, seed, episode)
    if render and SCENE in spec.capabilities:
        check_rendering(make, seeds[0], episodes[0])
    _check_closed(env, episodes[0])


def _play_and_check(env: Any, seed: int, max_steps: int) -> Episode:
    """Play an episode, check each step by itself, and keep everything."""
    rng, spec = np.random.default_rng(seed), env.spec
    episode = Episode()
    result = env.reset(seed=seed)
    require(isinstance(result, tuple) and len(result) == 2, "reset", "reset() does not return (observations, infos)")
    require(list(env.agents) == list(env.possible_agents), "agents", f"after reset, agents are {env.agents}")
    check_step(env, list(env.agents), result)
    record(env, episode, result)
    while env.agents:
        short = len(episode.actions) < max_steps
        require(short, "end", f"the episode of seed {seed} has not ended in {max_steps} steps")
        acting = list(env.agents)
        actions = {agent: _draw(rng, result[0][agent].get(MASK), spec.num_actions) for agent in acting}
        kept, states = result, [env.state()] if STATE in spec.capabilities else []
        result = env.step(dict(actions))
        require(isinstance(result, tuple) and len(result) == 5, "step", "step() does not return five dicts")
        check_step(env, acting, result)
        check_texts(spec, episode.results[0][0], result[0])
        check_flags(env, acting, result)
        if MASK in spec:
            check_illegal(acting, actions, episode.results[-1][0], result[4])
        episode.actions.append(actions)
        record(env, episode, result)
        lasts = not difference(kept, episode.results[-2])
        lasts = lasts and all(np.array_equal(state, episode.states[-2]) for state in states)
        require(lasts, "ownership", "a step overwrites the arrays that the step before has returned")
    return episode


def _draw(rng: np.random.Generator, mask: np.ndarray | None, count: int) -> int:
    """Mostly a legal action, at times any."""
    if mask is None or rng.random() < 0.15:
        return int(rng.integers(count))
    return int(rng.choice(np.flatnonzero(mask)))


def _check_end(env: Any, episode: Episode) -> None:
    """Check the end: no agents, empty results, and no more actions."""
    try:
        nothing = env.step({})
    except Exception as error:
        raise ConformanceError("end", f"step({{}}) after the end raises {error!r}") from error
    require(nothing == ({}, {}, {}, {}, {}), "end", "step({}) after the end does not return five empty dicts")
    require(_refuses(env, episode.actions[-1]), "end", "step() after the end accepts actions")


def _check_going_on(env: Any, seed: int, episode: Episode) -> None:
    """Check reset() without a seed: it goes on to the next episode, always the same one, whatever was played."""
    env.reset(seed=seed)
    following = [env.reset() for _ in range(3)]
    differ = any(difference(result[0], episode.results[0][0]) for result in following)
    require(differ, "going on", "reset() without a seed begins the same episode again")
    replay(env, seed, episode)
    for k, expected in enumerate(following, 1):
        where = difference(env.reset(), expected)
        require(not where, "going on", f"episode {k} of seed {seed} depends on how the one before was played")


def _check_copies(env: Any, seed: int, episode: Episode) -> None:
    """Check that a pickle and a copy, made in the middle of an episode, go on as the env would have."""
    middle = len(episode.actions) // 2
    go_to(env, seed, episode, middle)
    for how, twin in ((how, make_copy(env)) for how, make_copy in COPIES.items()):
        require(list(twin.agents) == list(env.agents), "copies", f"{how} taken after step {middle} has other agents")
        same = STATE not in env.spec.capabilities or np.array_equal(twin.state(), env.state())
        require(same, "copies", f"{how} taken after step {middle} has another state")
        again = replay(twin, None, episode, middle)
        compare("copies", f"in {how} taken after step {middle}", again, episode, middle + 1)


def _refuses(env: Any, actions: Any) -> bool:
    try:
        env.step(actions)
    except Exception:  # whatever it raises, it has refused
        return True
    return False


def _check_closed(env: Any, episode: Episode) -> None:
    """Check `close`, which may be called twice: nothing goes on after it, and one class of error says so."""
    env.close()
    env.close()
    calls = {"reset()": env.reset, "step()": lambda: env.step(dict(episode.actions[0]))}
    calls |= {"step({})": lambda: env.step({})} | ({"state()": env.state} if STATE in env.spec.capabilities else {})
    for name, call in calls.items():
        try:
            call()
        except CallOrderError:
            continue
        except Exception as error:
            raise ConformanceError("close", f"{name} after close() raises {error!r}, no CallOrderError") from error
        raise ConformanceError("close", f"{name} is answered after close()")


def _check_bad_actions(env: Any, seed: int, episode: Episode) -> None:
    """Check that actions outside the space, missing and unknown agents are refused, and change nothing."""
    env.reset(seed=seed)
    good, agent = episode.actions[0], next(iter(episode.actions[0]))
    count = int(env.action_space(agent).n)
    bad = [{**good, agent: action} for action in (-1, count, 0.5, None, "up")]
    others = {name: action for name, action in good.items() if name != agent}
    for actions in (*bad, others, {**good, "no agent": 0}):
        require(_refuses(env, actions), "bad actions", f"step({actions}) is accepted")
        same = STATE not in env.spec.capabilities or np.array_equal(env.state(), episode.states[0])
        same = same and list(env.agents) == list(good)
        require(same, "bad actions", f"step({actions}) is refused, but has changed the game")
    first = env.step(dict(good))
    where = difference(first, episode.results[1])
    require(not where, "bad actions", "after refused actions the game goes on in another way")


def _check_masked_actions(env: Any, seed: int, episode: Episode, noop: int) -> None:
    """Check that a masked action is a no-op with a flag: the step it makes is the one that `noop` makes."""
    for step, (actions, before) in enumerate(zip(episode.actions[:8], episode.results, strict=False)):
        for agent in actions:
            mask = before[0][agent][MASK]
            if mask[noop] and not mask.all():
                masked = int(np.flatnonzero(mask == 0)[0])
                ways = Episode()
                for action in (masked, noop):
                    go_to(env, seed, episode, step)
                    record(env, ways, env.step({**actions, agent: action}))
                result, expected = ways.results
                flagged = result[4][agent].pop("illegal", False) is True
                require(flagged, "illegal", f"{agent} played {masked}, which is masked, and infos do not say so")
                same = not difference(result, expected)
                same = same and all(np.array_equal(state, ways.states[0]) for state in ways.states)
                require(same, "illegal", f"masked action {masked} of {agent} is not the same as action {noop}")

"""check_parallel_env: a check that an environment keeps every promise that learners and tools rely on.

PettingZoo's own test runs first. It lets observations outside their space and masked actions pass, and plays each
game once; so whole episodes are played after it, several times over, and everything that comes out is compared.
"""

from __future__ import annotations

import contextlib
import copy
import io
import pickle
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.utils.env_checker import data_equivalence
from pettingzoo import ParallelEnv

from magrounding.envs.game_env import GameEnv
from magrounding.errors import CallOrderError, ConfigurationError, MagroundingError
from magrounding.spec import EPISODE, EXPERT, MASK, SCENE, SCORE, SCORES, STATE, WON, EnvSpec
from magrounding.text_view import HAPPENED, find_text_view

NAMES = ("observations", "rewards", "terminations", "truncations", "infos", "state()")
COPIES: dict[str, Callable[[Any], Any]] = {
    "a pickle": lambda env: pickle.loads(pickle.dumps(env)),
    "a deepcopy": copy.deepcopy,
}
Look = Callable[[Any, tuple[dict[str, Any], ...]], None]
"""Looks at an env, and at what its last call has returned."""


class ConformanceError(MagroundingError, AssertionError):
    """An environment breaks a rule; the sentence begins with the name of the `check`."""

    @property
    def check(self) -> str:
        """The rule that is broken."""
        return self.args[0]

    def __str__(self) -> str:
        return "{}: {}".format(*self.args)


@dataclass
class _Episode:
    """A game that was played.

    Attributes:
        seed: of its reset.
        actions: of each step.
        frames: of the reset and of each step: its five dicts (those that a reset lacks are empty) and the state.
        labels: of the expert in each moment, where there is one.
    """

    seed: int
    actions: list[dict[str, int]] = field(default_factory=list)
    frames: list[tuple[Any, ...]] = field(default_factory=list)
    labels: list[np.ndarray] = field(default_factory=list)


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
    """Check a ParallelEnv by PettingZoo's own test, and against what its own `spec` says.

    It plays a whole episode of each seed, mostly with legal actions, and checks observations against their spaces,
    rewards and flags; then plays it again, in the same env, in a fresh one, from a pickle taken in the middle, and with
    every array that it was given scribbled over. In the end it closes the env, which must then refuse all calls with
    `magrounding.errors.CallOrderError`. Masks, texts, state, labels, score, pictures and `describe` are checked where
    the spec has them as fields, capabilities or outcome.

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
    spec = _check_declarations(env)
    _check_by_pettingzoo(make())
    episodes = [_play_and_check(env, seed, max_steps) for seed in seeds]
    for episode in episodes:
        _play_again(env, episode, "determinism", "in the same env")
        _play_again(make(), episode, "determinism", "in a fresh env")
        _play_again(env, episode, "ownership", "after the caller changed what it got", look=_scribble)
        if EXPERT in spec.capabilities:
            _play_again(env, episode, "expert", "after best_actions()", look=partial(_look_at_labels, episode))
        if isinstance(env, GameEnv):
            _play_again(env, episode, "words", "after describe()", look=_look_at_texts)
        if copies:
            _check_copies(env, episode)
        _check_bad_actions(env, episode)
        if MASK in spec and noop is not None:
            _check_masked_actions(env, episode, noop)
    first = [episode.frames[0][0] for episode in episodes]
    differ = any(not _same(each, first[0]) for each in first[1:])
    _require(differ, "seeds", f"seeds {list(seeds)} all begin with the same observations")
    if going_on:
        _check_going_on(env, episodes[0])
    if render and SCENE in spec.capabilities:
        for mode in env.metadata["render_modes"]:
            shown: Any = make()
            shown.render_mode = mode
            how = f"after render() in mode {mode!r}"
            _play_again(shown, episodes[0], "rendering", how, look=partial(_look_at_picture, []))
            shown.close()
    _check_closed(env, episodes[0])


def _require(condition: Any, check: str, message: str) -> None:
    if not condition:
        raise ConformanceError(check, message)


def _check_declarations(env: Any) -> EnvSpec:
    """Check agents' names and spaces against the spec, and return it."""
    parallel = hasattr(env, "possible_agents") and hasattr(env, "observation_space")
    _require(parallel, "agents", f"a PettingZoo ParallelEnv is checked, this is a {type(env).__name__}")
    agents, spec = env.possible_agents, getattr(env, "spec", None)
    if not isinstance(spec, EnvSpec):
        raise ConfigurationError(
            f"{type(env).__name__}.spec is {type(spec).__name__}, where checks read what to expect: set it to a "
            "magrounding.spec.EnvSpec"
        )
    good = len(set(agents)) == len(agents) == spec.num_agents
    _require(good, "agents", f"possible_agents is {agents}, the spec says {spec.num_agents} agents")
    for agent in agents:
        action, observation = env.action_space(agent), env.observation_space(agent)
        _require(
            action == spaces.Discrete(spec.num_actions),
            "spaces",
            f"the action space of {agent} is {action}, not Discrete({spec.num_actions})",
        )
        parts = observation.spaces if isinstance(observation, spaces.Dict) else {}
        for name, part in spec.space().spaces.items():
            found = parts.get(name)
            same = found is not None and (found.shape, found.dtype) == (part.shape, part.dtype)
            _require(same, "spaces", f"{name!r} of {agent} has the space {found}, the spec says {part}")
    if STATE in spec.capabilities:
        space = getattr(env, "state_space", None)
        fits = isinstance(space, spaces.Box) and space.shape == (spec.state_size,)
        _require(fits, "spaces", f"state_space is {space}, not a Box of {spec.state_size} numbers")
    return spec


def _check_by_pettingzoo(env: Any) -> None:
    """Run PettingZoo's own test; its warnings, of agents that get too little or too much, are faults too."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")  # its package of tests imports examples by a route that it has deprecated
        from pettingzoo.test import parallel_api_test

        warnings.filterwarnings("error", module=r"pettingzoo\.test\.parallel_test")
        try:
            parallel_api_test(env, num_cycles=100)
        except Exception as error:
            raise ConformanceError("pettingzoo", f"parallel_api_test ends with {error!r}") from error


def _play_and_check(env: Any, seed: int, max_steps: int) -> _Episode:
    """Play an episode, check each step and the end by themselves, and keep everything."""
    rng, spec, episode = np.random.default_rng(seed), env.spec, _Episode(seed)
    result = env.reset(seed=seed)
    _require(list(env.agents) == list(env.possible_agents), "agents", f"after reset, agents are {env.agents}")
    _check_step(env, list(env.agents), result)
    episode.frames.append(copy.deepcopy(_frame(env, result)))
    while env.agents:
        short = len(episode.actions) < max_steps
        _require(short, "end", f"the episode of seed {seed} has not ended in {max_steps} steps")
        acting, before, kept = list(env.agents), episode.frames[-1], _frame(env, result)
        actions = {agent: _draw(rng, before[0][agent].get(MASK), spec.num_actions) for agent in acting}
        result = env.step(dict(actions))
        _check_step(env, acting, result)
        _check_flags(env, acting, result)
        for agent in acting if MASK in spec else ():
            illegal, flagged = not before[0][agent][MASK][actions[agent]], bool(result[4][agent].get("illegal", False))
            played = f"{agent} played {actions[agent]}, its mask makes illegal {illegal}, its infos say {flagged}"
            _require(flagged == illegal, "illegal", played)
        for text in (each.name for each in spec.texts if each.lifetime == EPISODE):
            lasts = all(np.array_equal(episode.frames[0][0][agent][text], result[0][agent][text]) for agent in acting)
            _require(lasts, "texts", f"{text!r} changes in an episode, the spec says that it stays")
        _require(_same(kept, before), "ownership", "a step overwrites the arrays that the step before has returned")
        episode.actions.append(actions)
        episode.frames.append(copy.deepcopy(_frame(env, result)))
    try:
        nothing = env.step({})
    except Exception as error:
        raise ConformanceError("end", f"step({{}}) after the end raises {error!r}") from error
    _require(nothing == ({}, {}, {}, {}, {}), "end", "step({}) after the end does not return five empty dicts")
    _require(_refuses(env, episode.actions[-1]), "end", "step() after the end accepts actions")
    return episode


def _frame(env: Any, result: tuple[dict[str, Any], ...]) -> tuple[Any, ...]:
    """Results of a call, and the state after it."""
    state = env.state() if STATE in env.spec.capabilities else None
    return (*result, state) if len(result) == 5 else (result[0], {}, {}, {}, result[1], state)


def _same(a: Any, b: Any) -> bool:
    return bool(data_equivalence(a, b, exact=True))


def _draw(rng: np.random.Generator, mask: np.ndarray | None, count: int) -> int:
    """Mostly a legal action, at times any."""
    if mask is None or rng.random() < 0.15:
        return int(rng.integers(count))
    return int(rng.choice(np.flatnonzero(mask)))


def _check_step(env: Any, acting: list[str], result: tuple[dict[str, Any], ...]) -> None:
    """Check observations, state, masks and the keys of infos."""
    spec, observations, infos = env.spec, result[0], result[-1]
    for agent in acting:
        for name, part in env.observation_space(agent).spaces.items():
            value = observations[agent].get(name)
            good = isinstance(value, np.ndarray) and value.dtype == part.dtype and part.contains(value)
            _require(good, "observations", f"{name!r} of {agent} is outside its space {part}: {value}")
        if MASK in spec:
            mask = observations[agent][MASK]
            _require(mask.any(), "masks", f"the mask of {agent} leaves no action")
            same = np.array_equal(infos[agent].get(MASK), mask)
            _require(same, "masks", f"the masks of {agent} in observations and infos differ, or infos have none")
        for key, promised in (("text", spec.texts), ("document", spec.shared_texts)):
            _require(not promised or key in infos[agent], "infos", f"infos of {agent} lack {key!r}")
    for name in (each.name for each in spec.fields if each.shared):
        same = all(np.array_equal(observations[agent][name], observations[acting[0]][name]) for agent in acting)
        _require(same, "shared", f"the spec says that all agents see one {name!r}, but what they see differs")
    if STATE in spec.capabilities:
        state, space = env.state(), env.state_space
        good = isinstance(state, np.ndarray) and state.dtype == space.dtype and space.contains(state)
        _require(good, "state", f"state() is outside state_space {space}")


def _check_flags(env: Any, acting: list[str], result: tuple[dict[str, Any], ...]) -> None:
    """Check rewards and flags, and the outcome at the end."""
    _, rewards, terminations, truncations, infos = result
    for agent in acting:
        _require(_is_number(rewards[agent]), "rewards", f"{agent} gets {rewards[agent]!r}, not a finite float")
        flags = terminations[agent], truncations[agent]
        good = all(isinstance(flag, bool | np.bool_) for flag in flags)
        _require(good, "flags", f"{agent} has the flags {flags}, not two bools")
    for agent in () if env.agents else acting:
        won, score = infos[agent].get("won"), infos[agent].get("score")
        good = env.spec.outcome != WON or isinstance(won, bool)
        _require(good, "infos", f"'won' in infos of {agent} is {won!r} at the end, not a bool")
        scored = env.spec.outcome == SCORE or SCORES in env.spec.capabilities
        good = not scored or _is_number(score)
        _require(good, "infos", f"'score' in infos of {agent} is {score!r} at the end, not a finite float")


def _is_number(value: Any) -> bool:
    return isinstance(value, float | np.floating) and bool(np.isfinite(value))


def _play_again(
    env: Any, episode: _Episode, check: str, how: str, start: int = -1, look: Look = lambda env, result: None
) -> None:
    """Play an episode again after step `start` (−1: from a reset), and look at each moment: it must come out alike."""
    for step in range(start + 1, len(episode.frames)):
        result = env.step(dict(episode.actions[step - 1])) if step else env.reset(seed=episode.seed)
        for name, a, b in zip(NAMES, _frame(env, result), episode.frames[step], strict=True):
            _require(_same(a, b), check, f"{how}, {name} of step {step} differ")
        look(env, result)


def _scribble(env: Any, value: Any) -> None:
    """Overwrite everything that can be."""
    if isinstance(value, np.ndarray):
        value.fill(99)
    elif isinstance(value, dict | tuple):
        for part in value.values() if isinstance(value, dict) else value:
            _scribble(env, part)
    if isinstance(value, dict | list):
        value.clear()


def _look_at_labels(episode: _Episode, env: Any, result: tuple[dict[str, Any], ...]) -> None:
    """Check that best actions are [n, A] bool, and none of them masked; keep them."""
    shape, labels = (env.spec.num_agents, env.spec.num_actions), env.best_actions()
    good = isinstance(labels, np.ndarray) and labels.dtype == np.bool_ and labels.shape == shape
    _require(good, "expert", f"best_actions() is no array {list(shape)} of bool")
    for agent in env.agents if MASK in env.spec else ():
        masked = labels[env.possible_agents.index(agent)] & (result[0][agent][MASK] == 0)
        _require(not masked.any(), "expert", f"best_actions() has a masked action for {agent}")
    episode.labels.append(labels.copy())


def _look_at_texts(env: Any, result: tuple[dict[str, Any], ...]) -> None:
    """Check that `describe` is the text of each agent's observation alone."""
    view = find_text_view(getattr(env, "id", ""), env.spec)
    for agent, observation in result[0].items():
        text = env.describe(agent)
        _require(text == env.describe(agent), "words", f"two texts of one moment of {agent} differ")
        only = view.describe({each.name: np.asarray(observation[each.name]) for each in env.spec.fields})
        alone = text.startswith(f"{only}\n\n{HAPPENED}\n")
        _require(alone, "words", f"describe({agent!r}) is not the text of what {agent} observes")


def _look_at_picture(seen: list[Any], env: Any, result: tuple[dict[str, Any], ...]) -> None:
    """Check the pictures of the first moments and of the last one, which are of one size; `seen` are those before."""
    if len(seen) > 5 and env.agents:
        return
    picture = env.render()
    seen.append(picture)
    _require(np.array_equal(picture, env.render()), "rendering", "two looks at one moment differ")
    if env.render_mode == "rgb_array":
        good = isinstance(picture, np.ndarray) and picture.dtype == np.uint8 and picture.shape[2:] == (3,)
        good = good and picture.shape == seen[0].shape
        _require(good, "rendering", "'rgb_array' gives no pictures [height, width, 3] uint8 of one size")
    elif env.render_mode.startswith("ansi"):
        _require(isinstance(picture, str) and picture, "rendering", f"mode {env.render_mode!r} gives no text")


def _check_copies(env: Any, episode: _Episode) -> None:
    """Check that copies made in the middle of an episode go on as the env would have, and that their experts do."""
    middle = len(episode.actions) // 2

    def ask(env: Any, result: tuple[dict[str, Any], ...], labels: Iterator[np.ndarray]) -> None:
        advice = next(labels, None)  # an expert may remember the moments in which it was asked
        same = advice is None or np.array_equal(env.best_actions(), advice)
        _require(same, "copies", f"an expert advises otherwise {how}")

    for how, make_copy in ((f"in {how} taken after step {middle}", make_copy) for how, make_copy in COPIES.items()):
        labels = iter(episode.labels)
        for step in range(middle + 1):
            result = env.step(dict(episode.actions[step - 1])) if step else env.reset(seed=episode.seed)
            ask(env, result, labels)
        _play_again(make_copy(env), episode, "copies", how, middle, partial(ask, labels=labels))


def _check_going_on(env: Any, episode: _Episode) -> None:
    """Check reset() without a seed: it goes on to the next episode, always the same one, whatever was played."""
    env.reset(seed=episode.seed)
    following = [copy.deepcopy(env.reset()) for _ in range(3)]
    differ = any(not _same(result[0], episode.frames[0][0]) for result in following)
    _require(differ, "going on", "reset() without a seed begins the same episode again")
    _play_again(env, episode, "going on", "after other episodes")
    for k, expected in enumerate(following, 1):
        same = _same(env.reset(), expected)
        _require(same, "going on", f"episode {k} of seed {episode.seed} depends on how the one before was played")


def _refuses(env: Any, actions: Any) -> bool:
    try:
        env.step(actions)
    except Exception:  # whatever it raises, it has refused
        return True
    return False


def _check_bad_actions(env: Any, episode: _Episode) -> None:
    """Check that actions outside the space, missing and unknown agents are refused, and change nothing."""
    env.reset(seed=episode.seed)
    good, agent = episode.actions[0], next(iter(episode.actions[0]))
    bad = [{**good, agent: action} for action in (-1, int(env.action_space(agent).n), 0.5, None, "up")]
    others = {name: action for name, action in good.items() if name != agent}
    for actions in (*bad, others, {**good, "no agent": 0}):
        _require(_refuses(env, actions), "bad actions", f"step({actions}) is accepted")
    _play_again(env, episode, "bad actions", "after refused actions", 0)


def _check_masked_actions(env: Any, episode: _Episode, noop: int) -> None:
    """Check that a masked action is a no-op with a flag: the step it makes is the one that `noop` makes."""
    for step, (actions, before) in enumerate(zip(episode.actions[:8], episode.frames, strict=False)):
        for agent in actions:
            mask, frames = before[0][agent][MASK], []
            if mask[noop] and not mask.all():
                masked = int(np.flatnonzero(mask == 0)[0])
                for action in (masked, noop):
                    env.reset(seed=episode.seed)
                    for others in episode.actions[:step]:
                        env.step(dict(others))
                    result = env.step({**actions, agent: action})
                    result[4][agent].pop("illegal", None)
                    frames.append(copy.deepcopy(_frame(env, result)))
                same = _same(*frames)
                _require(same, "illegal", f"masked action {masked} of {agent} is not the same as action {noop}")


def _check_closed(env: Any, episode: _Episode) -> None:
    """Check `close`, which may be called twice: nothing goes on after it, and one class of error says so."""
    env.close()
    env.close()
    calls = {
        "reset()": env.reset,
        "step()": lambda: env.step(dict(episode.actions[0])),
        "step({})": lambda: env.step({}),
    }
    for name, call in (calls | ({"state()": env.state} if STATE in env.spec.capabilities else {})).items():
        try:
            call()
        except CallOrderError:
            continue
        except Exception as error:
            raise ConformanceError("close", f"{name} after close() raises {error!r}, no CallOrderError") from error
        raise ConformanceError("close", f"{name} is answered after close()")

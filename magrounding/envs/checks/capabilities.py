"""Checks of capabilities: an expert's labels, pictures, and observations in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from magrounding.envs.checks.episode import Episode, difference, require
from magrounding.envs.checks.step import MASK
from magrounding.text_view import HAPPENED, find_text_view


def check_expert(env: Any, seed: int, episode: Episode) -> None:
    """Check that best actions are [n, A] bool, none of them masked, and that asking for them changes nothing."""
    shape = env.spec.num_agents, env.spec.num_actions
    result = env.reset(seed=seed)
    for actions, expected in zip(episode.actions, episode.results[1:], strict=True):
        labels = env.best_actions()
        good = isinstance(labels, np.ndarray) and labels.dtype == np.bool_ and labels.shape == shape
        require(good, "expert", f"best_actions() is no array {list(shape)} of bool")
        if MASK in env.spec:
            for agent in env.agents:
                best = labels[env.possible_agents.index(agent)]
                legal = not (best & (result[0][agent][MASK] == 0)).any()
                require(legal, "expert", f"best_actions() has a masked action for {agent}")
        result = env.step(dict(actions))
        same = not difference(result[:4], expected[:4])
        require(same, "expert", "best_actions() changes the game")


def check_copied_expert(env: Any, seed: int, episode: Episode, copies: Mapping[str, Callable[[Any], Any]]) -> None:
    """Check that experts of copies made within an episode advise what the env's own does, which was asked before."""
    env.reset(seed=seed)
    middle, twins = len(episode.actions) // 2, {}
    for step, actions in enumerate(episode.actions):
        labels = env.best_actions()
        if step == middle:
            twins = {how: make_copy(env) for how, make_copy in copies.items()}
        for how, twin in twins.items():
            same = np.array_equal(twin.best_actions(), labels)
            require(same, "copies", f"{how} taken after step {middle} has an expert who advises otherwise")
            twin.step(dict(actions))
        env.step(dict(actions))


def check_text_view(env: Any, seed: int, episode: Episode) -> None:
    """Check that `describe` is the text of each agent's observation alone, and that asking for it changes nothing."""
    view = find_text_view(getattr(env, "id", ""), env.spec)
    result = env.reset(seed=seed)
    for actions, expected in zip([*episode.actions, None], episode.results, strict=True):
        for agent in result[0]:
            text = env.describe(agent)
            require(isinstance(text, str), "words", f"describe({agent!r}) gives {type(text).__name__}, no text")
            require(text == env.describe(agent), "words", f"two texts of one moment of {agent} differ")
            only = view.describe({field.name: np.asarray(expected[0][agent][field.name]) for field in env.spec.fields})
            seen_alone = text.startswith(f"{only}\n\n{HAPPENED}\n")
            require(seen_alone, "words", f"describe({agent!r}) is not the text of what {agent} observes")
        if actions is not None:
            result = env.step(dict(actions))
    require(not difference(result, episode.results[-1]), "words", "describe() changes the game")


def check_rendering(make: Callable[[], Any], seed: int, episode: Episode) -> None:
    """Check that every mode shows every moment, in frames of one size, and that looking changes nothing."""
    for mode in make().metadata["render_modes"]:
        env = make()
        env.render_mode = mode
        env.reset(seed=seed)
        frames = [env.render(), env.render()]
        require(np.array_equal(*frames), "rendering", f"two looks at one moment differ in mode {mode!r}")
        for actions, expected in zip(episode.actions, episode.results[1:], strict=True):
            result = env.step(dict(actions))
            where = difference(result, expected)
            require(not where, "rendering", f"render() in mode {mode!r} changes the game")
            if len(frames) < 6 or not env.agents:
                frames.append(env.render())
        for frame in frames:
            if mode.startswith("ansi"):
                require(isinstance(frame, str) and bool(frame), "rendering", f"mode {mode!r} gives no text")
            elif mode == "rgb_array":
                good = isinstance(frame, np.ndarray) and frame.dtype == np.uint8 and frame.shape[2:] == (3,)
                require(good, "rendering", "mode 'rgb_array' gives no picture [height, width, 3] uint8")
                require(frame.shape == frames[0].shape, "rendering", "frames differ in size")
        env.close()

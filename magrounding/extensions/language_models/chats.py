"""Chats: games as what each agent saw, in words, and the move it made; to learn from, and as examples in a prompt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from magrounding.brief import brief
from magrounding.envs.make import make_vec
from magrounding.errors import ConfigurationError
from magrounding.extensions.language_models.prompts import JSON
from magrounding.registry import ENVS, env_entry
from magrounding.storage import json_text, parse_json
from magrounding.teams.actor import Actor, has_expert, make_expert
from magrounding.teams.episodes import Episodes
from magrounding.text_view import LEFT_OUT, MANUAL, TOLD_BY, Happened, TextView, action_name, find_text_view, joined
from magrounding.vector import Observation, VectorEnv, observation_of

EXAMPLE_SEED = 2**44
"""Seed of the first example of a prompt; games of matches, reports and training never come near it."""
_EXAMPLES, _STEPS = 2, 12
"""Games of a prompt, and steps that it shows of each at most."""


TOLD = "TOLD"
"""Title of statements that were told in the step before."""


class Turn(NamedTuple):
    """One step of one agent: what it saw, in words, without the texts that last the game; and the move it made."""

    seen: str
    move: str


@dataclass(frozen=True)
class Chat:
    """One game of one agent.

    Attributes:
        rules: texts that last the game, as they were at its beginning.
        turns: its steps.
        won, reward: how it ended, and the sum of the agent's rewards.
    """

    __repr__ = brief

    rules: str
    turns: tuple[Turn, ...]
    won: bool
    reward: float

    def messages(self, instructions: str, form: str) -> list[dict[str, str]]:
        """Return it as messages of a chat, as a model with these instructions would have had it."""
        return conversation(instructions, self.rules, [(turn.seen, in_form(turn.move, form)) for turn in self.turns])


def conversation(instructions: str, rules: str, turns: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    """Return messages of (what an agent saw, what was replied, or "" where a reply is to come)."""
    found = [{"role": "system", "content": instructions}]
    for k, (seen, reply) in enumerate(turns):
        text = f"{rules}\n\n{seen}" if rules and not k else seen
        found.append({"role": "user", "content": text})
        found += [{"role": "assistant", "content": reply}] if reply else []
    return found


def described(
    view: TextView, obs: Observation, row: int, agent: int, happened: Happened, before: str = ""
) -> tuple[str, str]:
    """Return the texts that last the game, and all else that an agent sees, in words.

    A manual that others add to is one of them; its lines that are not in those of the step `before` are among the rest.
    """
    seen = view.sections(observation_of(view.spec, obs, row, agent), happened)
    lasting = (*view.spec.lasting_texts, *((MANUAL,) if TOLD_BY in view.spec else ()))
    rules = joined({name.upper(): seen.pop(name.upper()) for name in lasting if name.upper() in seen})
    known = (*before.split("\n"), LEFT_OUT) if before else rules.split("\n")
    told = [line for line in rules.split("\n") if line not in known]
    return rules, joined({TOLD: told, **seen} if told else seen)


def in_form(move: str, form: str) -> str:
    """Return a reply of a form that holds a move."""
    return json_text({"move": move}) if form == JSON else f"<move>{move}</move>"


def chats_of(vec: VectorEnv, seed: int, actor: Actor) -> list[Chat]:
    """Have an actor play the game of a seed in a batch of one; return the chat of each agent.

    A move that was not legal stands there by its name all the same, and the next turn says what it came to.
    """
    view = find_text_view(vec.id, vec.spec)
    rules, turns = [""] * vec.num_agents, [list[Turn]() for _ in range(vec.num_agents)]
    first = dict[int, str]()
    happened = [Happened()] * vec.num_agents
    episodes = Episodes(actor, vec, 1, seed, draw_seed=seed)
    while episodes.rows.size:
        alive = episodes.info.alive[0].copy()
        actions = np.where(alive, episodes.choose(), 0)
        for agent in np.flatnonzero(alive).tolist():
            rules[agent], seen = described(view, episodes.obs, 0, agent, happened[agent], rules[agent])
            first.setdefault(agent, rules[agent])
            own = observation_of(vec.spec, episodes.obs, 0, agent)
            turns[agent].append(Turn(seen, action_name(vec.spec, own, int(actions[0, agent]))))
        episodes.play(actions)
        happened = [
            Happened(int(actions[0, agent]), bool(episodes.info.illegal[0, agent]), float(episodes.rewards[0, agent]))
            for agent in range(vec.num_agents)
        ]
    won, returns = bool(episodes.info.won[0]), episodes.info.returns[0].tolist()
    return [Chat(first.get(k, ""), tuple(turns[k]), won, returns[k]) for k in range(vec.num_agents)]


def example_games(env: str, options: Mapping[str, Any], form: str) -> str:
    """Return games of the expert on the training split as text; ConfigurationError where there is no expert."""
    if env not in ENVS or not has_expert(env, env_entry(env).describe(**options)):
        raise ConfigurationError(f"a prompt as few_games shows games of an expert, and {env or 'this game'} has none")
    entry = env_entry(env)
    training = {"split": "train"} if "split" in entry.options else {}
    return _example_games(env, json_text({**options, **training}), form)


@cache
def _example_games(env: str, options: str, form: str) -> str:
    parts = []
    with closing(make_vec(env, 1, **parse_json(options))) as vec:
        for k in range(_EXAMPLES):
            chat = chats_of(vec, EXAMPLE_SEED + k, make_expert(vec))[0]
            turns = "\n\n".join(f"{turn.seen}\n\nREPLY\n{in_form(turn.move, form)}" for turn in chat.turns[:_STEPS])
            parts.append("\n\n".join(filter(None, (f"EXAMPLE {k + 1}", chat.rules, turns))))
    return "\n\n".join(parts)

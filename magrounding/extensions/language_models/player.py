"""LanguageTeam: language models as an actor; each reads what its agent sees, in words, and replies with a move."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence, Set
from concurrent.futures import wait
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from magrounding.capabilities import HasFacts, find_capability
from magrounding.errors import ConfigurationError, check_choice
from magrounding.extensions.language_models.calls import FACT, MOVE, Call, Calls, totals_of
from magrounding.extensions.language_models.dialogue import Dialogue, instructions, legal_mask, no_op, outcome
from magrounding.extensions.language_models.endpoint import WINDOW, Endpoint, EndpointFailed, Message, in_thread
from magrounding.extensions.language_models.models import LanguageModel, read_models
from magrounding.extensions.language_models.prompts import Prompt, read_move
from magrounding.spec import MASK
from magrounding.storage import digest
from magrounding.text_view import Happened, find_text_view
from magrounding.vector import Observation, VectorEnv

STATED = "said"
"""Polarity of a claim that is neither denied nor retracted."""


class LanguageModels(AbstractContextManager["LanguageModels"]):
    """The language models that line-ups may name, and what they share.

    Args:
        models: name → options, as a file names them.
        parallel: how many calls are under way at once, at most.
        calls: where they are kept.
        ask_facts: ask a question about the manual when a game begins, where the environment lists its facts.

    Attributes:
        calls: see above; set it before the first game begins.
        turn: is held by each call under way.
        stopped: no more calls are made; they fail.
        given_up: line-up → (seed, episode) → the failure of a call for which its game was given up.
    """

    def __init__(
        self,
        models: Mapping[str, LanguageModel] | None = None,
        parallel: int = 16,
        calls: Calls | None = None,
        *,
        ask_facts: bool = False,
    ) -> None:
        self.calls = calls or Calls()
        self.parallel, self.ask_facts, self.stopped = parallel, ask_facts, False
        self._models, self.turn = dict(models or {}), threading.Semaphore(parallel)
        self._players: dict[str, ModelPlayer] = {}
        self.given_up: dict[str, dict[tuple[int, int], str]] = {}

    @classmethod
    def read(cls, file: Path | None, parallel: int, ask_facts: bool) -> LanguageModels:
        """Those of a file (.toml), if any; ConfigurationError for one that makes none."""
        return cls({} if file is None else read_models(file), parallel, ask_facts=ask_facts)

    def player(self, source: str) -> ModelPlayer:
        """Return the player "NAME", of the file, or "MODEL@URL".

        Raises:
            ConfigurationError: a name that the file does not have, no address, or a key that is not set.
            MissingExtra: httpx2 is not installed.
        """
        if source not in self._players:
            self._players[source] = ModelPlayer(source, self._find(source), self)
        return self._players[source]

    def _find(self, source: str) -> LanguageModel:
        name, at, url = source.rpartition("@")
        if source not in self._models and at and "://" in url:
            return LanguageModel(name, url)
        if not self._models:
            raise ConfigurationError(
                f"llm:{source} is not known: name a file of language models with --llm, or an endpoint as in "
                "llm:MODEL@http://127.0.0.1:8080/v1"
            )
        return self._models[check_choice("language model", source, tuple(self._models))]

    def team(
        self, players: Mapping[int, ModelPlayer], vec: VectorEnv, seed: int, lineup: str, *, ends_games: bool
    ) -> LanguageTeam:
        """Return the actor of some agents."""
        return LanguageTeam(players, vec, seed, lineup, ends_games=ends_games)

    def keep_calls(self, players: Sequence[ModelPlayer], file: Path, resume: bool) -> None:
        """Keep the calls of some players in a file; CheckpointError where one had other options before."""
        calls = Calls(file, resume=resume)
        for player in players:
            calls.check(player.name, player.settings_hash)
            player.models.calls = calls

    def call_totals(self, lineup: str) -> dict[str, Any]:
        """Add up the calls of a line-up (`totals_of`)."""
        return totals_of(self.calls.of(lineup))

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        for player in self._players.values():
            player.endpoint.close()


class ModelPlayer:
    """One language model as a player.

    Attributes:
        name: in line-ups, behind "llm:".
        model, prompt, endpoint: its options, the template, and what answers.
        models: what it shares with others.
    """

    def __init__(self, name: str, model: LanguageModel, models: LanguageModels) -> None:
        self.name, self.model, self.models = name, model, models
        self.prompt, self.endpoint = Prompt.load(model.prompt), Endpoint(model, models.turn)
        self.settings_hash = model.settings_hash


class _Memory:
    """Memory of one game.

    Attributes:
        seed, episode: its place.
        dialogues: agent → its conversation.
        step: that comes next.
        actions: [n] of the step before.
        returns: [n] sums of rewards before the last action.
        given_up: a call has failed.
    """

    def __init__(self, seed: int, episode: int, dialogues: Mapping[int, Dialogue]) -> None:
        self.seed, self.episode, self.dialogues, self.step = seed, episode, dialogues, 0
        self.actions = self.returns = np.zeros(0)
        self.given_up = False


class LanguageTeam:
    """Agents of a batch that language models play, several models or one; all are asked at once.

    Args:
        players: agent → its player, at least one; other agents get action 0.
        vec: the games; with `few_games` the examples are of its environment.
        seed: row b begins with the game of seed + b.
        lineup: the name of the line-up, for the record of calls.
        ends_games: a call that fails raises EndpointFailed; else its agent does nothing for the rest of the game.
    """

    accepts_rows = True

    def __init__(
        self, players: Mapping[int, ModelPlayer], vec: VectorEnv, seed: int, lineup: str, *, ends_games: bool
    ) -> None:
        self._players, self._seed, self._lineup, self._ends_games = dict(players), seed, lineup, ends_games
        self._models = models = next(iter(players.values())).models
        self._view, self._spec = find_text_view(vec.id, vec.spec), vec.spec
        self._instructions = {
            agent: instructions(player.prompt, player.model.reply, vec.id, vec.options)
            for agent, player in players.items()
        }
        self._facts = find_capability(vec, HasFacts) if models.ask_facts else None

    def initial_memory(self, num_envs: int) -> list[_Memory]:
        """Return the memory of games that are about to start."""
        return [self._begin(self._seed + row, 0) for row in range(num_envs)]

    def act(
        self,
        obs: Observation,
        memory: list[_Memory],
        info: Any,
        greedy: bool = True,
        rows: np.ndarray | None = None,
    ) -> tuple[np.ndarray, list[_Memory]]:
        """Return actions [B, n] int64; `greedy` is without meaning, as sampling is an option of the model.

        EndpointFailed where a call fails and that ends a game.
        """
        shape = obs[MASK].shape[:2]
        chosen = range(shape[0]) if rows is None else rows.tolist()
        actions = np.zeros(shape, np.int64)
        questions: list[Callable[[], None]] = []
        for row in chosen:
            if info["done"][row] and memory[row].step:
                memory[row] = self._begin(memory[row].seed, memory[row].episode + 1)
            questions += [
                partial(self._play, obs, info, memory[row], actions, row, agent)
                for agent in self._players
                if info["alive"][row, agent]
            ]
        at_once(questions)
        for row in chosen:
            memory[row].step += 1
            memory[row].actions = actions[row].copy()
            memory[row].returns = self._returns(info, row)
        return actions, memory

    def set_last_actions(self, memory: list[_Memory], actions: np.ndarray) -> None:
        """Note what was done where others decided, too."""
        for game, done in zip(memory, actions, strict=True):
            game.actions = done.copy()

    def _begin(self, seed: int, episode: int) -> _Memory:
        dialogues = {
            agent: Dialogue(
                self._view, player.prompt, player.model.reply, self._instructions[agent], player.model.history
            )
            for agent, player in self._players.items()
        }
        return _Memory(seed, episode, dialogues)

    def _returns(self, info: Any, row: int) -> np.ndarray:
        """Return the sums of rewards [n] of the game on show."""
        return np.zeros(self._spec.num_agents) if info["done"][row] else info["return"][row].copy()

    def _play(self, obs: Observation, info: Any, game: _Memory, actions: np.ndarray, row: int, agent: int) -> None:
        """Put the move of one agent into `actions`."""
        if not game.given_up:
            dialogue = game.dialogues[agent]
            dialogue.ask(obs, row, agent, self._happened(game, info, row, agent))
            try:
                if self._facts is not None and not game.step and agent == min(self._players):
                    self._ask_fact(game, agent, dialogue.rules, self._facts.facts(row))
                actions[row, agent] = self._ask_move(game, agent, dialogue)
                return
            except EndpointFailed as failed:
                if self._ends_games:
                    raise
                game.given_up = True
                self._models.given_up.setdefault(self._lineup, {})[game.seed, game.episode] = str(failed)
        actions[row, agent] = no_op(self._spec, legal_mask(self._spec, obs, row, agent))

    def _ask_move(self, game: _Memory, agent: int, dialogue: Dialogue) -> int:
        while dialogue.action is None:
            attempt, asked = dialogue.refused, dialogue.messages
            call = self._call(game, agent, MOVE, attempt, asked, dialogue.read, dialogue.shorten)
            dialogue.answer(call.reply, call.finish)
        return dialogue.action

    def _ask_fact(self, game: _Memory, agent: int, rules: str, facts: Sequence[Any]) -> None:
        """Ask a question about the manual, where it has a claim to ask for."""
        asked = ask_fact(facts, game.seed + game.episode)
        if asked is None:
            return
        prompt, form = self._players[agent].prompt, self._players[agent].model.reply
        text = prompt.fill("fact", form, rules=rules, question=asked.question, answers=", ".join(asked.answers))
        numbers = {answer: k for k, answer in enumerate(asked.answers)}

        def read(reply: str, finish: str) -> tuple[int | None, str]:
            return read_move(reply, form, numbers, numbers, finish)

        right = {numbers[answer] for answer in asked.right}
        self._call(game, agent, FACT, 0, [{"role": "user", "content": text}], read, right=right)

    def _call(
        self,
        game: _Memory,
        agent: int,
        question: str,
        attempt: int,
        messages: Sequence[Message],
        read: Callable[[str, str], tuple[int | None, str]],
        shorter: Callable[[], Sequence[Message] | None] = lambda: None,
        right: Set[int] | None = None,
    ) -> Call:
        """Return the call of a question: one that is on record, or a new one; EndpointFailed where it failed.

        Args:
            game, agent, question, attempt, messages: see `Call`.
            read: (reply, finish) → number of its move or answer, or None and the reason why there is none.
            shorter: as of `Endpoint.complete`; it is called as often again for a call on record.
            right: numbers of the right answers.
        """
        player, calls = self._players[agent], self._models.calls
        model, prompt = player.model, player.prompt
        place = {"lineup": self._lineup, "player": player.name, "seed": game.seed, "agent": agent, "step": game.step}
        place |= {"question": question, "attempt": attempt, "settings": player.settings_hash}
        key = digest({**place, "episode": game.episode, "messages": list(messages)})[:32]
        known = calls.find(key)
        if known is not None:
            for _ in range(known.faults.get(WINDOW, 0)):
                shorter()
            return known
        if self._models.stopped:
            raise EndpointFailed("language models are asked no more")
        began = time.monotonic()
        about: dict[str, Any] = {
            **place,
            "key": key,
            "model": model.model,
            "temperature": model.temperature,
            "max_tokens": model.max_tokens,
            "prompt": f"{prompt.name} {prompt.version}",
            "prompt_hash": prompt.hash,
        }
        try:
            reply = player.endpoint.complete(messages, shorter)
        except EndpointFailed as failed:
            about |= {"tries": failed.tries, "faults": failed.faults, "failure": str(failed)}
            calls.add(Call(**about, seconds=time.monotonic() - began, price=model.cost(0, 0, 0)))
            raise
        seconds, tokens = time.monotonic() - began, reply.tokens
        number, refused = read(reply.text, reply.finish)
        call = Call(
            **about,
            reply=reply.text,
            finish=reply.finish,
            **tokens._asdict(),
            seconds=seconds,
            tries=reply.tries,
            faults=reply.faults,
            price=model.cost(tokens.read, tokens.cached, tokens.written),
            refused=refused,
            right=None if right is None else number in right,
        )
        calls.add(call)
        return call

    def _happened(self, game: _Memory, info: Any, row: int, agent: int) -> Happened:
        """Return what an agent's last action came to, from what the batch reports."""
        if not game.step:
            return Happened()
        reward = self._returns(info, row)[agent] - game.returns[agent]
        return outcome(game.actions[agent], info["illegal"][row, agent], reward)


def at_once(functions: Sequence[Callable[[], None]]) -> None:
    """Call functions at once, each in a thread that does not keep the process from ending; raise what the first raises.

    One alone is called in this thread.
    """
    if len(functions) == 1:
        functions[0]()
        return
    started = [in_thread(function) for function in functions]
    wait(started)
    for each in started:
        each.result()


class Asked(NamedTuple):
    """A question: the answers to choose from, and those that are right."""

    question: str
    answers: tuple[str, ...]
    right: frozenset[str]


def ask_fact(facts: Sequence[Any], seed: int) -> Asked | None:
    """Return a question for one of the claims of a manual (`HasFacts.facts`); None where two answers are not there.

    The answers are all objects of the same relation that the manual speaks of, in alphabetical order. The seed decides
    which claim it is.
    """
    rng, claims = np.random.default_rng(seed), list(dict.fromkeys(fact for fact in facts if fact.polarity == STATED))
    for k in rng.permutation(len(claims)).tolist():
        relation, subject = claims[k].relation, claims[k].subject
        answers = tuple(sorted({fact.object for fact in facts if fact.relation == relation}))
        right = frozenset(fact.object for fact in claims if (fact.relation, fact.subject) == (relation, subject))
        if len(answers) > len(right):
            return Asked(f'which of these is right: "{subject} {relation} …"?', answers, right)
    return None

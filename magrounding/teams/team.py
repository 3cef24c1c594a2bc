"""Team: trained agents, ready for a vector env or a single PettingZoo env."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

import numpy as np
import torch

from magrounding.agents.own_defaults import own_defaults
from magrounding.agents.policy import MARKS, Policy, common_diagnostics
from magrounding.agents.remapping import remap_embeddings
from magrounding.errors import ConfigurationError, MagroundingError, Unplayable
from magrounding.spec import MASK, EnvSpec
from magrounding.teams.origin import Origin
from magrounding.teams.player import Player, Shown, shown_to
from magrounding.threads import map_agents
from magrounding.vector import check_actions, check_count, check_rows

_RULES = "manual"
_AT_ONCE = 64
"""Texts that are encoded together for `relate_words`."""
TeamMemory = list[Player]
"""Memory of a team between steps: one Player for each agent, changed in place by `act`."""


class Team:
    """n policies that play together, each seeing its own observation only.

    Args:
        policies: one for each agent, in agent order; on one device.
        spec: of the environment (a grid of another size is fine).
        env, options: of the environment that it was trained in; "" where these are not known.

    Attributes:
        policies, spec: as given.
        num_agents: n.
        origin: the environment that it was trained in.
        depends_on_names: whether any of its networks does, see `Policy`.
    """

    accepts_rows = draws = explains = True

    def __init__(
        self,
        policies: Sequence[Policy],
        spec: EnvSpec,
        *,
        env: str = "",
        options: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self.policies = list(policies)
        self.spec = spec
        self.num_agents = len(self.policies)
        self.origin = Origin(spec, self.num_agents, env, options)
        self.depends_on_names = any(policy.depends_on_names for policy in self.policies)
        self._known: tuple[str, EnvSpec] | None = None  # games that were found fit

    def for_games(self, games: Any) -> Team:
        """Return this team where an environment uses its own words; else a copy that reads those of the environment.

        A word's embedding goes with its spelling; a new word has none of its own. `games` are of `make_vec` or `make`,
        or have their `id`, `options` and `spec`; ConfigurationError where networks read no other words.
        """
        spec, own = getattr(games, "spec", None), self.spec
        if not isinstance(spec, EnvSpec) or not hasattr(games, "id"):
            raise ConfigurationError(f"games are a vector env or an env of magrounding, got {games!r}")
        alike = spec.num_agents == self.num_agents and games.id == self.origin.env
        if not alike or (spec.vocabulary_hash == own.vocabulary_hash and spec.words == own.words):
            return self  # what is no matter of words `act` refuses
        try:
            policies = [remap_embeddings(policy, spec) for policy in self.policies]
        except ConfigurationError as error:
            source = f" ({spec.source})" if spec.source else ""
            raise self.origin.refuse(f"games with other words{source}, and {error}") from None
        return Team(policies, spec, env=games.id, options=games.options)

    def initial_memory(self, num_envs: int, seed: int = 0) -> TeamMemory:
        """Return the memory of B episodes that are about to start; `seed` decides every action that will be drawn."""
        num_envs = check_count("num_envs", num_envs, 1)
        seed = check_count("seed", seed, 0, 2**62 // self.num_agents)
        generators = [torch.Generator().manual_seed(self.num_agents * seed + i) for i in range(self.num_agents)]
        return [Player(each, self.spec, num_envs, draws) for each, draws in zip(self.policies, generators, strict=True)]

    def act(
        self,
        obs: Mapping[str, Any],
        memory: TeamMemory,
        info: Mapping[str, Any] | None = None,
        greedy: bool = True,
        *,
        rows: np.ndarray | None = None,
        explain: bool = False,
    ) -> tuple[Any, TeamMemory]:
        """Choose the next action of all agents.

        Args:
            obs: a vector env's observation (arrays [B, n, …], shared ones [B, …]), or a single env's dict of dicts
                (memory for one game).
            memory: of `initial_memory`, then of the call before.
            info: the env's `info` or infos; None in the first step of a single env, where games have just begun.
            greedy: take the most likely action instead of drawing one.
            rows: [R] games of a vector env to play; the others get action 0.
            explain: let networks also compute the costly entries of `aux`.

        Returns:
            actions [B, n] int64 for a vector env, {agent: int} for the agents a single env shows; and the memory.

        Raises:
            Unplayable: games of other agents, words, fields or actions than it was trained for, or a network fails.
            ConfigurationError: a memory of other games, or what is no observation.
        """
        dicts = isinstance(obs, Mapping) and isinstance(info, Mapping | None)
        if not dicts or not all(isinstance(flag, bool | np.bool_) for flag in (greedy, explain)):
            raise ConfigurationError(
                f"a team acts on the observation and the info of an env, two dicts, got {type(obs).__name__} and "
                f"{type(info).__name__}; greedy and explain are true or false"
            )
        num_envs = self._check_memory(memory)
        if all(isinstance(seen, Mapping) for seen in obs.values()):
            return self._act_single(obs, memory, info, greedy, explain), memory
        rows = None if rows is None else check_rows(rows, num_envs)
        restarts, document = self._check_batch(obs, info, num_envs)

        def choose_for(i: int) -> np.ndarray:
            shown = shown_to(i, obs, self.spec, document)
            with self._network(i, shown):
                return memory[i].choose(shown, restarts, rows=rows, greedy=greedy, explain=explain).action

        actions = np.zeros((num_envs, self.num_agents), np.int64)
        for i, action in enumerate(map_agents(choose_for, range(self.num_agents))):
            actions[slice(None) if rows is None else rows, i] = action
        return actions, memory

    def _check_memory(self, memory: TeamMemory) -> int:
        """Return the number of episodes of a memory; ConfigurationError for one of another team."""
        if (
            not isinstance(memory, list)
            or len(memory) != self.num_agents
            or any(getattr(p, "policy", None) is not own for p, own in zip(memory, self.policies, strict=True))
        ):
            raise ConfigurationError(
                "memory is what initial_memory(num_envs) of this very team returns, then what act returned the last "
                f"time; got {type(memory).__name__} of something else"
            )
        return memory[0].num_envs

    def _check_batch(
        self, obs: Mapping[str, Any], info: Mapping[str, Any] | None, num_envs: int
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the episodes that have just begun, and the keys of their texts; ConfigurationError for misfits."""
        origin = getattr(info, "origin", None)
        if origin is not None and origin != self._known:
            self.origin.check_games(origin[1], origin[0])
            self._known = origin
        self.origin.check_seen(obs, (num_envs, self.num_agents), shared=(num_envs,))
        if info is None:
            return np.zeros(num_envs, np.bool_), None
        for name, kinds in (("done", "b"), ("document", "iu")):
            array = info.get(name)
            if not isinstance(array, np.ndarray) or array.shape != (num_envs,) or array.dtype.kind not in kinds:
                raise ConfigurationError(f"info is what the vector env returned beside obs; its {name!r} is {array!r}")
        return info["done"], info["document"]

    def set_last_actions(self, memory: TeamMemory, actions: np.ndarray) -> None:
        """Set the actions [B, n] of the step that `act` chose for, where others decided in part; changes its `memory`.

        InvalidAction for an action outside [0, A), anything but integers, or a wrong shape.
        """
        taken = check_actions(actions, (memory[0].num_envs, self.num_agents), self.spec.num_actions)
        for i, player in enumerate(memory):
            player.last_action = taken[:, i].copy()

    @own_defaults()
    @torch.no_grad()
    def relate_words(self, obs: Mapping[str, np.ndarray], subjects: np.ndarray, names: np.ndarray) -> np.ndarray | None:
        """Return how much each episode's text relates some words to some names, as the agents read it.

        `subjects` and `names` are [M] and [N, W] ids, see `Policy.relate_words`. The result is [B, M, N], the sum over
        distinct networks; None where one relates no words. Unplayable for games of other agents, words or fields.
        """
        games = len(next(iter(obs.values())))
        self.origin.check_seen(obs, (games, self.num_agents), shared=(games,))
        shown = shown_to(0, obs, self.spec, None).texts
        asked = [torch.from_numpy(each.astype(np.int64)) for each in (subjects, names)]
        total: Any = 0
        for policy in {id(each): each for each in self.policies}.values():
            name, fields = next(((name, of) for name, of in policy.reads.items() if _RULES in of), ("", ()))
            if not fields or any(field not in shown for field in fields):
                return None
            device, related = next(policy.parameters()).device, []
            for first in range(0, len(shown[_RULES]), _AT_ONCE):
                rows = slice(first, first + _AT_ONCE)
                ids = {field: torch.from_numpy(shown[field][rows].copy()).to(device) for field in fields}
                text = policy.encode(name, ids)
                related.append(policy.relate_words(text, *(each.to(device) for each in asked)))
            if any(each is None for each in related):
                return None
            total = total + torch.cat(related).cpu().numpy()
        return total

    def aux(self, memory: TeamMemory) -> list[dict[str, np.ndarray]]:
        """Return the reports of each agent's network on the last `act`, [R, …] by name."""
        return [player.aux for player in memory]

    def marks(self, memory: TeamMemory) -> np.ndarray | None:
        """Return [R, n, H, W] int8: cells that an agent claims (1) or leaves (0), −1 elsewhere; None without claims."""
        aux = [each[MARKS] for each in self.aux(memory) if MARKS in each]
        return np.stack(aux, 1) if aux and len(aux) == len(memory) else None

    def diagnose(
        self, memory: TeamMemory, actions: np.ndarray, alive: np.ndarray, rows: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Count in a step, by the networks' reports of it (`Policy.diagnostics`).

        Args:
            memory: of the `act` before, with `explain`.
            actions: [B, n] of that `act`.
            alive: [B, n] bool, agents whose actions count.
            rows: [R] that it played.

        Returns:
            name → [R, n], nan where nothing is to be counted; nothing where networks count different things.
        """
        diagnose = common_diagnostics(self.policies)
        return {} if diagnose is None else diagnose(self.aux(memory), actions[rows], alive[rows])

    def _act_single(
        self,
        obs: Mapping[str, Mapping[str, np.ndarray]],
        memory: TeamMemory,
        info: Mapping[str, Any] | None,
        greedy: bool,
        explain: bool,
    ) -> dict[str, int]:
        actions, restarts = {}, np.array([info is None])
        numbers = [str(agent).rpartition("_")[2] for agent in obs]
        places = [int(number) if number.isdecimal() else self.num_agents for number in numbers]
        if max(places, default=0) >= self.num_agents or (info is None and 0 < len(obs) < self.num_agents):
            raise self.origin.refuse(f"a game of the agents {', '.join(map(str, obs))}")
        if memory[0].num_envs != 1:
            raise ConfigurationError(f"the memory is of {memory[0].num_envs} games, 1 is shown: initial_memory(1)")
        for place, (agent, seen) in zip(places, obs.items(), strict=True):
            about = None if info is None else info.get(agent)
            about = about if isinstance(about, Mapping) else {}
            seen = self._with_mask(seen, about)
            self.origin.check_seen(seen, (), shared=())
            key = about.get("document")
            self._check_words(seen, about)
            own = {each.name: seen[each.name][None if each.shared else (None, None)] for each in self.spec.fields}
            known = np.array([key], np.int64) if isinstance(key, int | np.integer) else None
            shown = shown_to(0, own, self.spec, known)
            with self._network(place, shown):
                choice = memory[place].choose(shown, restarts, greedy=greedy, explain=explain)
            actions[agent] = int(choice.action[0])
        return actions

    @contextmanager
    def _network(self, agent: int, shown: Shown) -> Iterator[None]:
        """Raise Unplayable where an agent's network fails, or is made for maps of another size."""
        policy, seen = self.policies[agent], {**shown.observation, **shown.texts}
        pairs = ((f.name, seen[f.name].shape[1:], f.shape) for f in self.spec.fields)
        other = ", ".join(f"{name!r} is {[*shape]}, not {[*own]}" for name, shape, own in pairs if shape != own)
        refusal = f"{type(policy).__name__} cannot play these games: {other}"
        if policy.grid_shape is not None and policy.grid_shape != seen[self.spec.grid.name].shape[1:]:
            raise Unplayable(refusal)
        try:
            yield
        except (MagroundingError, MemoryError, OSError, torch.OutOfMemoryError):
            raise
        except Exception as error:
            raise Unplayable(f"{refusal}{'; ' * bool(other)}{type(error).__name__}: {error}") from error

    def _with_mask(self, seen: Any, about: Mapping[str, Any]) -> Any:
        """An observation with the mask of a game that need not show one: as in its infos, else every action counts."""
        if not isinstance(seen, Mapping) or MASK in seen or MASK not in self.spec:
            return seen
        given, mask = about.get(MASK), self.spec[MASK]
        return {**seen, MASK: np.ones(mask.shape, mask.dtype) if given is None else np.asarray(given)}

    def _check_words(self, seen: Mapping[str, np.ndarray], about: Mapping[str, Any]) -> None:
        """Raise a ConfigurationError for a manual whose ids stand for other words than those in the infos of an env.

        Ids that are no spelling at all of the words there are another manual's, which may be shown.
        """
        text = about.get("text")
        rules = text.get(_RULES) if isinstance(text, Mapping) else None
        if _RULES not in seen or seen[_RULES].ndim != 2 or not isinstance(rules, list) or not self.spec.words:
            return
        ids, lines = [[i for i in row if i] for row in seen[_RULES].tolist()], [str(line).split() for line in rules]
        if list(map(len, ids)) != list(map(len, lines)):
            return
        spelt = {pair for row, line in zip(ids, lines, strict=True) for pair in zip(row, line, strict=True)}
        one_to_one = len(spelt) == len({i for i, _ in spelt}) == len({word for _, word in spelt})
        if one_to_one and any(self.spec.words[i] != word for i, word in spelt):
            raise self.origin.refuse(f"a game that says {rules[0]!r} with other ids: `team.for_games(env)` may read it")


def mixed_team(teams: Sequence[Team]) -> Team:
    """Return a team of agents that were not trained together: agent i is agent i of `teams[i]`.

    `mixed_team([one, other, other])` is the first agent of one team with the second and third of another.
    ConfigurationError for anything but one team for each agent, or teams that observe different things.
    """
    sequence = isinstance(teams, Sequence) and len(teams) > 0
    if not sequence or any(not isinstance(team, Team) or team.num_agents != len(teams) for team in teams):
        raise ConfigurationError(f"a mixed team is made of a list of teams of as many agents, got {teams!r}")
    if not all(team.spec.reads_alike(teams[0].spec) for team in teams):
        raise ConfigurationError("these teams cannot be mixed: they read other words, or observe other things")
    origin = teams[0].origin
    policies = [team.policies[i] for i, team in enumerate(teams)]
    return Team(policies, teams[0].spec, env=origin.env, options=origin.options)

"""EnvRow: one env of n agents that plays in one row of an arena and restarts by itself."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from magrounding.errors import ConfigurationError
from magrounding.simulators.answers import flag, key, number, refuse
from magrounding.simulators.arena import Arena
from magrounding.simulators.env_adapters import ByAgent, EnvAdapter, attribute
from magrounding.simulators.spaces import MASK, ONLY_FIELD, field_bounds, observed
from magrounding.simulators.writer import FieldWriter, converted

_SUCCESS = ("won", "is_success", "success")
_NOTHING: Mapping[str, Any] = {}
_STREAM = 5
"""`seeding.NUM_STREAMS`, so a stream of its own. To import it is to import numba, longer than many a worker's start."""
_SEED_BITS = 31
"""Many simulators take seeds of 32 bits, signed."""
_PACKAGE = __name__.partition(".")[0]


class EnvRow:
    """One env in one row of an arena: it reads its row's actions, and writes everything that the row shows.

    Agents that are dead keep what they saw last. An agent that vanishes from `env.agents` without a flag is
    terminated; a step that is both the end and the limit is an end. A copy, or a pickle, goes on in the copy of its
    arena.

    Raises:
        ConfigurationError: in `reset`, `step`, `label` and `write_state`, for what an env may not show or say.
    """

    def __init__(self, adapter: EnvAdapter, arena: Arena, row: int) -> None:
        self._adapter, self._spec, self.arena, self.row = adapter, arena.spec, arena, row
        self.env = adapter.env
        self._agents = adapter.possible_agents
        self._first_action = int(getattr(adapter.action_space(self._agents[0]), "start", 0))
        self._alive: list[bool] = []
        self._ended: list[bool] = []
        self._returns: list[float] = []
        self._length = self._counting = 0
        self._score: float | None = None
        self._bind()

    def _bind(self) -> None:
        """Find the row's places in the arena."""
        parts, env = observed(self._adapter.observation_space(self._agents[0])), self.env
        seen, row = self.arena.observation, self.row
        self._mask_may_lack = MASK not in parts
        ours = type(env).__module__.startswith(f"{_PACKAGE}.")  # an env itself, not what somebody wraps around it
        self._shared: list[FieldWriter] = []
        self._own: list[list[FieldWriter]] = [[] for _ in self._agents]
        for field in self._spec.fields:
            bounds = field_bounds(field, parts.get(field.name))
            for i in range(1 if field.shared else len(self._agents)):
                view = seen[field.name][row : row + 1] if field.shared else seen[field.name][row, i : i + 1]
                writer = FieldWriter(field, view.reshape(field.shape), *bounds, env, trusted=ours)
                (self._shared if field.shared else self._own[i]).append(writer)
        each = ("rewards", "returns", "terminated", "truncated", "illegal")
        self._each = [getattr(self.arena, name)[row] for name in each]

    def __getstate__(self) -> dict[str, Any]:
        """All but the places in the arena: copies of views would be arrays of their own."""
        return {name: value for name, value in vars(self).items() if name not in ("_shared", "_own", "_each")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._bind()

    def reset(self) -> None:
        """Start the episode that the arena names; where the row is not selected, an end is shown no more."""
        arena, row = self.arena, self.row
        if arena.selected[row]:
            self._start()
        if arena.selected[row] or arena.done[row]:
            self._show_nothing_played()
        for array in (arena.rewards, arena.terminated, arena.truncated, arena.illegal):
            array[row] = 0

    def _show_nothing_played(self) -> None:
        arena, row = self.arena, self.row
        for array in (arena.rewards, arena.returns, arena.score, arena.length):
            array[row] = 0
        for array in (arena.terminated, arena.truncated, arena.illegal, arena.done, arena.won):
            array[row] = False

    def step(self) -> None:
        """Play the row's actions; an episode that ends keeps its last observation, and the next one starts."""
        adapter, arena, row, first = self._adapter, self.arena, self.row, self._first_action
        if arena.held[row]:
            self._show_nothing_played()
            return
        waiting, actions = adapter.agents, arena.actions[row].tolist()
        chosen = {
            agent: first + (action if lives else 0)
            for agent, action, lives in zip(self._agents, actions, self._alive, strict=True)
            if lives or agent in waiting
        }
        observations, rewards, terminations, truncations, infos = adapter.step(chosen)
        acting = adapter.agents
        self._observe(observations, infos, acting)
        try:
            self._count(rewards, terminations, truncations, infos, acting)
        except ConfigurationError as error:
            who, step = self._agents[self._counting], self._length + 1
            raise ConfigurationError(f"{error}; agent {who!r}, row {row}, step {step} of its game") from None
        done = not any(self._alive)
        won = done and self._success(infos)
        score = _first(infos, "score")
        if score is not None:
            self._score = number(score, "the score", self.env)
        arena.done[row], arena.won[row], arena.length[row] = done, won, self._length
        arena.score[row] = won if self._score is None else self._score
        if done:
            self.restart()
        else:
            arena.alive[row] = self._alive

    def restart(self) -> None:
        """Keep the last observation of an episode that has ended, and start the next one."""
        arena, row = self.arena, self.row
        for name, array in arena.final_observation.items():
            array[row] = arena.observation[name][row]
        arena.episode[row] += 1
        self._start()

    def _count(
        self, rewards: ByAgent, terminations: ByAgent, truncations: ByAgent, infos: ByAgent, acting: Collection[Any]
    ) -> None:
        """Write each agent's results of a step, and note which are still alive."""
        env, alive, ended, totals = self.env, self._alive, self._ended, self._returns
        gains, returns, terminated, truncated, illegal = self._each
        for i, agent in enumerate(self._agents):
            self._counting = i
            gain, terminates, truncates, wrong = 0.0, False, False, False
            if alive[i]:
                gain = number(rewards[agent], "the reward", env)
                truncates = flag(truncations[agent], "truncated", env)
                terminates = flag(terminations[agent], "terminated", env) or not (truncates or agent in acting)
                wrong = flag(infos.get(agent, _NOTHING).get("illegal", False), "'illegal' in infos", env)
                totals[i] = number(totals[i] + gain, "the sum of rewards", env)
                ended[i] = terminates or truncates
            gains[i], returns[i], illegal[i] = gain, totals[i], wrong
            terminated[i], truncated[i] = terminates, truncates and not terminates
            alive[i] = not ended[i] and agent in acting
        self._length += 1

    def label(self) -> None:
        """Write the env's best actions where the row is selected; every action where it knows none."""
        if not self.arena.selected[self.row]:
            return
        env, labels = self.env, self.arena.labels[self.row]
        labels[...] = converted(attribute(env, "best_actions")(), labels, "best_actions()", env, reshape=True)
        labels[~labels.any(1)] = True

    def write_state(self) -> None:
        env, state = self.env, self.arena.state[self.row]
        state[...] = converted(attribute(env, "state")(), state, "state()", env, reshape=True)

    def _start(self) -> None:
        arena, row, env = self.arena, self.row, self.env
        seed, episode = int(arena.seeds[row]), int(arena.episode[row])
        observations, infos = self._adapter.reset(episode_seed(seed, episode))
        acting = self._adapter.agents
        self._alive = [agent in acting for agent in self._agents]
        if not any(self._alive):
            refuse("agents after reset()", acting, env, "one at least")
        self._ended = [False] * len(self._agents)
        self._returns = [0.0] * len(self._agents)
        self._length, self._score = 0, None
        for agent, writers in zip(self._agents, self._own, strict=True):
            if agent not in observations:
                for writer in writers:
                    writer.clear()
        self._observe(observations, infos, acting)
        arena.alive[row] = self._alive
        document = _first(infos, "document")
        arena.document[row] = self._document(seed, episode) if document is None else key(document, "'document'", env)

    def _observe(self, observations: ByAgent, infos: ByAgent, acting: Collection[Any]) -> None:
        """Write observations of agents that go on or end now; shared fields come from the first of them."""
        shared: Iterable[FieldWriter] = self._shared
        for agent, own, ended in zip(self._agents, self._own, self._ended, strict=True):
            if ended:
                continue
            if agent in observations:
                self._write(observations[agent], infos.get(agent, _NOTHING), (*own, *shared) if shared else own)
                shared = ()
            elif agent in acting:
                refuse("observations", observations, self.env, f"one for {agent!r}, who acts next,")

    def _write(self, observation: Any, info: Mapping[str, Any], writers: Iterable[FieldWriter]) -> None:
        if type(observation) is not dict and not isinstance(observation, Mapping):
            observation = {ONLY_FIELD: observation}
        for writer in writers:
            name = writer.name
            if name in observation:
                writer.write(observation[name])
            elif name == MASK and name in info:
                writer.write(info[name])
            elif name == MASK and self._mask_may_lack:
                writer.clear()
            else:
                refuse("an observation", observation, self.env, f"one with {name!r}, which its spec names,")

    def _success(self, infos: ByAgent) -> bool:
        """Tell whether an agent is reported to have won, by the first of the known keys that is there."""
        for name in _SUCCESS:
            found = [flag(i[name], f"{name!r} in infos", self.env) for i in infos.values() if name in i]
            if found:
                return any(found)
        return False

    def _document(self, seed: int, episode: int) -> int:
        """Return a key of the shared texts, or, as no text is to be the same, one that no other episode has."""
        if not self._spec.shared_texts:
            return episode_key(seed, episode) >> 1
        from magrounding.texts import content_keys  # with numba: workers that need none start faster

        seen = self.arena.observation
        return int(content_keys({name: seen[name][self.row][None] for name in self._spec.shared_texts})[0])


def players(rows: Sequence[EnvRow]) -> Sequence[Any]:
    """Return what plays steps of these rows: each row itself, or what the class of the envs makes of all of them.

    A class that plays many of its envs at once says so by `step_together`, which takes the rows and has a `step`, too.
    """
    kinds = {type(row.env) for row in rows}
    together = vars(kinds.pop()).get("step_together") if len(kinds) == 1 else None
    return rows if together is None else [together(rows)]


def episode_seed(seed: int, episode: int) -> int:
    """Return what the env is reset with for episode k of a row: its seed itself for k = 0, then 31-bit hashes."""
    return seed if episode == 0 else episode_key(seed, episode) >> (64 - _SEED_BITS)


def episode_key(seed: int, episode: int) -> int:
    """Return a 64-bit key of one episode of one row, in a stream of its own."""
    return _hash(_hash(_hash(0, seed), episode), _STREAM)


def _hash(key: int, counter: int) -> int:
    """Compute `seeding.hash64` in plain integers."""
    ones = 2**64 - 1
    z = (key + 0x9E3779B97F4A7C15 * (counter + 1)) & ones
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & ones
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & ones
    return z ^ (z >> 31)


def _first(infos: ByAgent, name: str) -> Any:
    """Return the value of a key from the first agent that has it; None where none does."""
    return next((info[name] for info in infos.values() if name in info), None)

"""A world small enough to reason about: agents walk, one pit kills, one flag wins; every game ends at `max_cycles`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from magrounding.envs.render import Figure, Scene
from magrounding.envs.world import BatchedWorld, StepBuffers
from magrounding.spec import EPISODE, SCENE, STATE, EnvSpec, Field, FixedActions, Grid, Mask, Text
from magrounding.vocabulary import Vocabulary

STEPS = np.array([(0, 0), (-1, 0), (1, 0), (0, -1), (0, 1)])  # stay, up, down, left, right


class ToyWorld(BatchedWorld):
    """One game of n agents on 5 × 5, walls around; who enters the pit dies, and the first at the flag wins for all.

    Args:
        agents: n.
        max_cycles: limit of steps.
        without: fields and capabilities that it lacks.
        egocentric: what its spec says of its map.
    """

    num_envs = 1

    def __init__(
        self, agents: int = 2, max_cycles: int = 20, without: tuple[str, ...] = (), egocentric: bool = False
    ) -> None:
        self.num_agents = n = agents
        self.max_cycles = max_cycles
        self.vocabulary = Vocabulary("empty wall me ally pit flag reach the red blue".split())
        last = len(self.vocabulary) - 1
        fields = [
            Grid("grid", (5, 5, 2), 0, last, scenery_ids=(0, 1, 2), avatar_ids=(3, 4), egocentric=egocentric),
            Field("position", (2,), -1, 4),
            Text("manual", (2, 3), 0, last, shared=True, lifetime=EPISODE),
            Text("goal", (3,), 0, last, shared=True, lifetime=EPISODE),
            Field("inventory", (1,), 0, last),
            Mask("action_mask", (5,)),
        ]
        if n > 1:
            fields.append(Field("teammates", (n - 1, 3), -1, last))
        self.spec = EnvSpec(
            tuple(field for field in fields if field.name not in without),
            n,
            FixedActions(("stay", "up", "down", "left", "right")),
            self.vocabulary.words,
            max_cycles,
            capabilities=frozenset({STATE, SCENE}) - set(without),
            state_parts=(("grid", (5, 5)), ("agents", (n, 3))),
        )
        self._everything = replace(self.spec, fields=tuple(fields)).allocate(1)
        self.observation = {field.name: self._everything[field.name] for field in self.spec.fields}
        self.final_observation, self.final_rows = {}, np.zeros(0, np.int64)
        self.out = StepBuffers.allocate(1, n)
        self.seed, self.episode = 0, 0

    def reset(self, seeds: np.ndarray | None = None) -> None:
        self.seed, self.episode = (self.seed, self.episode + 1) if seeds is None else (int(seeds[0]), 0)
        rng = np.random.default_rng([self.seed, self.episode])
        cells = rng.permutation(9)[: self.num_agents + 2]
        *self.agents, self.pit, self.flag = (np.array([1 + c // 3, 1 + c % 3]) for c in cells)
        self.colour = ("red", "blue")[rng.integers(2)]
        for array in self.out:
            array[:] = 0
        self.out.alive[:] = True
        self.out.document[0] = self.seed * 1000 + self.episode
        self._observe()

    def step(self, actions: np.ndarray, auto_reset: bool) -> None:
        if auto_reset:
            raise NotImplementedError
        out, living = self.out, self.out.alive.copy()
        out.length[:] += 1
        out.rewards[0] = np.where(living[0], -0.02, 0)
        for i in np.flatnonzero(living[0]):
            out.illegal[0, i] = not self._everything["action_mask"][0, i, actions[0, i]]
            if not out.illegal[0, i]:
                self.agents[i] = self.agents[i] + STEPS[actions[0, i]]
            if (self.agents[i] == self.pit).all():
                out.alive[0, i], out.rewards[0, i] = False, -1
        winners = out.alive[0] & np.array([(a == self.flag).all() for a in self.agents])
        out.won[0] = winners.any()
        out.rewards[0, winners] = 1
        late = out.length[0] >= self.max_cycles and not out.won[0] and out.alive.any()
        out.done[0] = out.won[0] or late or not out.alive.any()
        out.truncated[:] = out.alive & late
        out.terminated[:] = living & ~out.truncated & (out.done[0] | ~out.alive)
        out.rewards[out.truncated] = -1
        out.returns[:] += out.rewards
        self._observe()

    def _observe(self) -> None:
        word, obs, alive = self.vocabulary, self._everything, self.out.alive[0]
        map_ = np.zeros((5, 5, 2), np.int16)
        map_[..., 0] = word["wall"]
        map_[1:4, 1:4, 0] = word["empty"]
        map_[*self.pit, 0], map_[*self.flag, 0] = word["pit"], word["flag"]
        obs["manual"][0] = [word.encode(f"the {self.colour} flag"), word.encode("the pit", 3)]
        obs["goal"][0] = word.encode("reach the flag")
        for i, position in enumerate(self.agents):
            obs["grid"][0, i] = map_
            for j in np.flatnonzero(alive):
                obs["grid"][0, i, *self.agents[j], 1] = word["me" if i == j else "ally"]
            obs["position"][0, i] = position if alive[i] else -1
            goes = [1 <= r <= 3 and 1 <= c <= 3 for r, c in position + STEPS]
            obs["action_mask"][0, i] = goes if alive[i] else [1, 0, 0, 0, 0]
            others = [[*(self.agents[j] if alive[j] else (-1, -1)), 0] for j in range(self.num_agents) if j != i]
            if others:
                obs["teammates"][0, i] = others

    def state(self) -> np.ndarray:
        agents = [[*p, a] if a else [-1, -1, 0] for p, a in zip(self.agents, self.out.alive[0], strict=True)]
        grid = self._everything["grid"][0, 0, ..., 0].ravel()
        return np.concatenate([grid, np.ravel(agents)])[None].astype(np.int16)

    def scene(self, row: int) -> Scene:
        walls = np.ones((5, 5), bool)
        walls[1:4, 1:4] = False
        people = [Figure(*p, "agent", str(i)) for i, p in enumerate(self.agents) if self.out.alive[0, i]]
        things = [Figure(*self.pit, "monster", "pit"), Figure(*self.flag, "item", "flag", self.colour)]
        outcome = ("won" if self.out.won[0] else "lost") if self.out.done[0] else ""
        return Scene(
            walls,
            (*people, *things),
            tuple(self.out.alive[0].tolist()),
            ("",) * self.num_agents,
            str(self.text(0)["goal"]),
            tuple(self.text(0)["manual"]),
            int(self.out.length[0]),
            self.max_cycles,
            outcome,
        )

    def text(self, row: int) -> dict[str, str | list[str]]:
        return {"manual": [self.vocabulary.decode(r) for r in self._everything["manual"][0]], "goal": "reach the flag"}

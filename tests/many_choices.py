"""A text world with up to 2,475 choices, other ones in every step, whose score is not success; and who plays it."""

import numpy as np
import torch
from torch import nn

import magrounding as mg
from magrounding.agents.policy import Accepts, Policy, PolicyOutput, mask_logits
from magrounding.spec import CHOICES, EPISODE, SCORE, SCORES, STEP, EnvSpec, Mask, Text, TextChoices
from magrounding.teams.player import Player
from magrounding.training.rollout import RolloutWorker
from tests.text_world import TextWorld

MOST, STEPS = 2475, 4
SPEC = EnvSpec(
    fields=(
        Text("task", (2,), 0, 9, shared=True, lifetime=EPISODE),
        Text("observation", (3,), 0, 9, lifetime=STEP),
        Text(CHOICES, (MOST, 3), 0, 9, lifetime=STEP),
        Mask("action_mask", (MOST,)),
    ),
    num_agents=1,
    actions=TextChoices(MOST, 3),
    words=("<pad>", *"abcdefghi"),
    max_cycles=STEPS,
    time_limit_is_loss=False,
    outcome=SCORE,
    capabilities=frozenset({SCORES}),
)


class ManyChoices(TextWorld):
    """The task names a word; a choice that begins with it is worth a point. The score is the part of points won."""

    metadata = {"name": "many_choices"}  # noqa: RUF012  PettingZoo has it so
    spec = SPEC

    def __init__(self, most=MOST):
        super().__init__()
        self.most = most

    def begin(self):
        self.points = 0
        self.task = int(self.rng.integers(1, 5))

    def step(self, actions):
        gain = int(self.offered[actions["agent_0"], 0] == self.task)
        self.points, self.length = self.points + gain, self.length + 1
        over = self.length == STEPS
        self.agents = [] if over else self.agents
        told = {"score": self.points / STEPS, "won": self.points == STEPS}
        parts = (self.look(), float(gain), False, over, told)
        return tuple({"agent_0": part} for part in parts)

    def look(self):
        self.offered = np.zeros((MOST, 3), np.int16)
        count = self.rng.integers(self.most // 2, self.most + 1)
        self.offered[:count] = self.rng.integers(1, 5, (count, 3))
        mask = (np.arange(MOST) < count).astype(np.int8)
        seen = self.rng.integers(1, 10, 3).astype(np.int16)
        return {
            "task": np.array([self.task, 0], np.int16),
            "observation": seen,
            CHOICES: self.offered,
            "action_mask": mask,
        }


class ChoiceReader(Policy):
    """Scores each distinct choice once for each observation, and gathers the scores of those on offer."""

    accepts = Accepts(actions=(TextChoices,), grid=False, fields=(CHOICES,))

    def __init__(self, spec, width=16):
        super().__init__(spec)
        self.reads = {"observation": ("task", "observation"), "choices": (CHOICES,)}
        self.words, self.encoded = (
            nn.Embedding(spec.vocabulary_size, width, padding_idx=0),
            dict.fromkeys(self.reads, 0),
        )
        self.task, self.value = nn.Linear(width, width), nn.Linear(width, 1)

    def encode(self, name, ids):
        texts = ids["task"] if name == "observation" else ids[CHOICES]  # [U, L]: a choice is a text of its own
        self.encoded[name] += len(texts)
        return {"vector": self.words(texts[:, 0].int())}

    def forward(self, batch):
        seen, choices = batch.texts["observation"], batch.texts["choices"]
        state = self.task(seen.encoding["vector"][seen.index])  # [T, B, D]
        scores = state @ choices.encoding["vector"].mT  # [T, B, U]
        logits = scores.gather(-1, choices.index)  # [T, B, C]
        return PolicyOutput(mask_logits(logits, batch.observation["action_mask"]), self.value(state).squeeze(-1))


def make_reader(seed=0):
    """A network whose weights `seed` decides."""
    torch.manual_seed(seed)
    return ChoiceReader(SPEC)


def make_actor(policy, num_envs=6, most=MOST):
    """A worker that plays with a network, its games begun and its draws fixed."""
    vec = mg.vectorize(lambda: ManyChoices(most), num_envs)
    player = Player(policy, vec.spec, num_envs, torch.Generator().manual_seed(1))
    worker = RolloutWorker(vec, [player], unroll=6)
    worker.start(seed=0)
    return worker

"""Digests of whole episodes: one number that changes if any observation, reward or flag of any step does.

`python -m tests.envs.episode_digest` prints digests and the splits as JSON: a test runs it without JIT, under another
hash seed, and compares. `tests.golden` keeps the digests of larger batches.
"""

from __future__ import annotations

import hashlib
import json

import numpy as np

import magrounding as mg
from magrounding.envs.messenger.games import STAGES as MESSENGER_STAGES
from magrounding.envs.messenger.games import TEAM_STAGES
from magrounding.envs.messenger.sentences import triples
from magrounding.envs.rtfm import splits
from magrounding.envs.rtfm.ontology import ROCK_PAPER_SCISSORS, STAGES, TASKS
from magrounding.envs.vector import WorldVectorEnv

CASES = {
    **{f"rtfm/{task}": ("rtfm", {"task": task}) for task in TASKS},
    **{f"rock_paper_scissors/{task}": ("rock_paper_scissors", {"task": task}) for task in ROCK_PAPER_SCISSORS},
    **{f"ma_rtfm/{stage}": ("ma_rtfm", {"stage": stage, "agents": 2}) for stage in STAGES},
    "ma_rtfm/s5 eval_new": ("ma_rtfm", {"stage": "s5", "agents": 3, "split": "eval_new", "death": "individual"}),
    "ma_rtfm/s5 eval_paraphrase": ("ma_rtfm", {"stage": "s5", "agents": 3, "split": "eval_paraphrase", "sight": 3}),
    "ma_rtfm/s4 eval": ("ma_rtfm", {"stage": "s4", "agents": 5, "split": "eval", "occupants": 1, "chase_range": None}),
    "ma_rtfm/s3 left": ("ma_rtfm", {"stage": "s3", "agents": 2, "size": 6, "drop_mode": "left", "max_cycles": 7}),
    "ma_rtfm/s5 kind": ("ma_rtfm", {"stage": "s5", "agents": 3, "reading": "kind", "talk": 1.5, "tells": 2}),
    "ma_rtfm/s2g librarian": ("ma_rtfm", {"stage": "s2g", "agents": 3, "reading": "librarian", "heard": "another"}),
    **{f"messenger/{stage}": ("messenger", {"stage": stage}) for stage in MESSENGER_STAGES},
    **{f"ma_messenger/{stage}": ("ma_messenger", {"stage": stage, "agents": 2}) for stage in TEAM_STAGES},
    "messenger/s2 test": ("messenger", {"stage": "s2", "split": "test", "manual": "reassigned", "max_cycles": 9}),
    "ma_messenger/s3 val": ("ma_messenger", {"stage": "s3", "agents": 4, "split": "val"}),
    "ma_messenger/s4 train_sc": ("ma_messenger", {"stage": "s4", "agents": 3, "split": "train_sc"}),
    "rtfm/nl resampled": ("rtfm", {"task": "nl", "resample_text": True, "shuffle_manual": False, "max_cycles": 9}),
}


def scripted_actions(step: int, rows: np.ndarray, agents: int, actions: int = 5) -> np.ndarray:
    """Actions [B, n] that depend on seed, step and agent only, the same with any version of NumPy."""
    mixed = (rows[:, None] * 40_503 + step * 2_654_435_761 + np.arange(agents) * 97_001) >> 5
    return mixed % 7 % 5 if actions == 5 else mixed % actions


def digest(vec: WorldVectorEnv, seed: int, steps: int) -> str:
    """SHA-256 of everything that `steps` steps give out."""
    total = hashlib.sha256()

    def add(arrays: dict[str, np.ndarray]) -> None:
        for key in sorted(arrays):
            total.update(f"{key}{arrays[key].shape}{arrays[key].dtype}".encode())
            total.update(np.ascontiguousarray(arrays[key]).tobytes())

    rows = seed + np.arange(vec.num_envs)
    add(vec.reset(seed=seed)[0])
    for step in range(steps):
        observation, rewards, terminated, truncated, info = vec.step(
            scripted_actions(step, rows, vec.num_agents, vec.spec.num_actions)
        )
        add(observation)
        add(info["final_observation"])
        add({"rewards": rewards, "terminated": terminated, "truncated": truncated, "state": vec.state()})
        # Keys of documents name configurations, whose options may grow in number without any change of a game.
        # `score` repeats `won`, and `fault` is None.
        others = "final_observation", "document", "score", "fault"
        add({key: value for key, value in info.items() if key not in others})
    return total.hexdigest()[:16]


def digests(rows: int, steps: int, seed: int = 0) -> dict[str, str]:
    """Case → digest of a small batch."""
    return {name: digest(mg.make_vec(env, rows, **options), seed, steps) for name, (env, options) in CASES.items()}


def split_digests() -> dict[str, str]:
    """The sides of assignments and of letters."""
    sides = {"simple": bytes(splits.side(i) for i in range(144))}
    sides["group"] = bytes(splits.side(i) for i in range(2_000_000, 2_002_000))
    for task in ROCK_PAPER_SCISSORS:
        for split in ("train", "eval"):
            sides[f"{task}/{split}"] = splits.letter_triples(task, split).tobytes()
    sides.update({f"messenger/{which}": triples(which).tobytes() for which in ("many", "single", "val", "test")})
    return {name: hashlib.sha256(side).hexdigest()[:16] for name, side in sides.items()}


if __name__ == "__main__":
    print(json.dumps({"episodes": digests(2, 20), "splits": split_digests()}))

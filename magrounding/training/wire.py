"""Trajectories as plain arrays: for learners in another process, or on another machine, than the actors.

Weights go to actors as safetensors (`agents.weights`), trajectories come back as arrays with names that `numpy.savez`
takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from magrounding.training.trajectory import Texts, Trajectory, Truncations


def trajectory_to_arrays(trajectory: Trajectory) -> dict[str, np.ndarray]:
    """A trajectory's arrays, each by the path that leads to it; what is None is left out."""
    return dict(_leaves(trajectory))


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, np.ndarray]]:
    if isinstance(value, Tensor):
        yield path, value.numpy(force=True)
    elif isinstance(value, np.ndarray | float | int):
        yield path, np.asarray(value)
    elif value is not None:
        if isinstance(value, tuple):
            parts = dict(zip("tb", value, strict=True))
        else:
            parts = value if isinstance(value, Mapping) else vars(value)
        for name, part in parts.items():
            yield from _leaves(part, f"{path}/{name}" if path else name)


def trajectory_from_arrays(arrays: Mapping[str, np.ndarray]) -> Trajectory:
    """The inverse of `trajectory_to_arrays`."""
    tree: dict[str, Any] = {"texts": {}, "truncations": {"observation": {}, "texts": {}}}
    for path, array in arrays.items():
        *folders, name = path.split("/")
        place = tree
        for folder in folders:
            place = place.setdefault(folder, {})
        place[name] = array
    ends = tree["truncations"]
    tree["truncations"] = Truncations((ends["where"]["t"], ends["where"]["b"]), ends["observation"], ends["texts"])
    tree["texts"] = {name: Texts(**each) for name, each in tree["texts"].items()}
    tree["metrics"] = {name: float(value) for name, value in tree.get("metrics", {}).items()}
    tree["segments"] = int(tree["segments"])
    for name in ("memory", "last_memory", "carried"):
        tree[name] = torch.from_numpy(tree[name]) if name in tree else None
    return Trajectory(**tree)

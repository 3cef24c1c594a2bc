"""What crosses the boundary between actors and learners, as plain arrays: for another process, or another machine.

Weights go to actors as safetensors (`agents.weights`), columns come back as arrays with names that `numpy.savez` takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
import torch
from torch import Tensor

from magrounding.training.experience import Column
from magrounding.training.text_track import TextColumn


def column_to_arrays(column: Column) -> dict[str, np.ndarray]:
    """A column's arrays, each by the path that leads to it; what is None is left out."""
    arrays: dict[str, np.ndarray] = {}
    for each in fields(Column):
        value = getattr(column, each.name)
        if isinstance(value, np.ndarray):
            arrays[each.name] = value
        elif isinstance(value, Tensor):
            arrays[each.name] = value.numpy(force=True)
        elif each.name == "cut":
            arrays |= {"cut/t": value[0], "cut/b": value[1]}
        elif each.name == "texts":
            for name, text in value.items():
                arrays |= {f"texts/{name}/index": text.index, f"texts/{name}/final": text.final}
                arrays |= {f"texts/{name}/ids/{field}": ids for field, ids in text.ids.items()}
        elif value is not None:
            arrays |= {f"{each.name}/{name}": np.asarray(part) for name, part in value.items()}
    return arrays


def column_from_arrays(arrays: Mapping[str, np.ndarray]) -> Column:
    """The inverse of `column_to_arrays`."""

    def under(prefix: str) -> dict[str, np.ndarray]:
        return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}

    texts = {
        name: TextColumn(under(f"texts/{name}/ids/"), arrays[f"texts/{name}/index"], arrays[f"texts/{name}/final"])
        for name in dict.fromkeys(path.split("/")[0] for path in under("texts/"))
    }
    values: dict[str, Any] = {
        "texts": texts,
        "cut": (arrays["cut/t"], arrays["cut/b"]),
        "metrics": {name: float(value) for name, value in under("metrics/").items()},
        **{name: under(f"{name}/") for name in ("observation", "final", "record", "extras")},
        **{name: torch.from_numpy(arrays[name]) if name in arrays else None for name in ("memory", "last_memory")},
    }
    return Column(**{each.name: values.get(each.name, arrays.get(each.name)) for each in fields(Column)})

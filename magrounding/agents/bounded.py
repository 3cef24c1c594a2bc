"""bounded: a network that would take too much memory is refused while it is built, not when the machine is full."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from magrounding.errors import ConfigurationError

MOST = 2**28
"""Numbers in the tensors of a network at most: 1 GiB in float32."""
_EACH = 2**14
"""Numbers that a tensor counts for at least: a million small layers are too many as well."""
_MAKERS = frozenset((torch.empty, torch.zeros, torch.ones, torch.full, torch.rand, torch.randn))
_NO_MEMORY = ("allocate", "overflow", "storage size", "invalid size", "too large")


class _Count(TorchFunctionMode):
    """Counter of the numbers in tensors that this thread makes; an empty tensor has no memory yet."""

    def __init__(self) -> None:
        super().__init__()
        self._made = 0

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        made = func(*args, **(kwargs or {}))
        if func in _MAKERS:
            self._made += max(made.numel(), _EACH)
            if self._made > MOST:
                raise MemoryError
        return made


@contextmanager
def bounded(what: str) -> Iterator[None]:
    """Raise ConfigurationError where a network that is built within has more than MOST numbers.

    Args:
        what: what is built, for the error, such as "the network of agent 'txt2pi'".
    """
    try:
        with _Count():
            yield
    except (MemoryError, RuntimeError, TypeError) as error:
        if not isinstance(error, MemoryError) and not any(word in str(error).lower() for word in _NO_MEMORY):
            raise
        raise ConfigurationError(
            f"{what} would take more than {MOST:,} parameters with these options: choose smaller ones"
        ) from None

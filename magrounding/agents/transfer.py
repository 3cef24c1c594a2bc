"""Transfers between the CPU and a network's device: what goes together is one copy, and copies can be counted."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

Name = TypeVar("Name", bound=Hashable)


@dataclass
class Transfers:
    """Copies that crossed the bus, and their bytes: to the device and back. The program waits for those that come back.

    With networks on the CPU nothing is copied: the same numbers say what would be.
    """

    to_device: int = 0
    bytes_to_device: int = 0
    from_device: int = 0
    bytes_from_device: int = 0


def upload(arrays: Mapping[Name, np.ndarray], device: torch.device | str) -> dict[Name, Tensor]:
    """Return arrays as tensors on a device, by one copy that nothing waits for; on the CPU they are the same memory."""
    tensors = {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()}
    if _counting:
        _count("to_device", tensors.values())
    return tensors if torch.device(device).type == "cpu" else _send(tensors, device)


def download(tensors: Mapping[Name, Tensor]) -> dict[Name, np.ndarray]:
    """Return tensors of one device as arrays, by one copy that is waited for; of bfloat16, as float32."""
    known = {name: each.float() if each.dtype == torch.bfloat16 else each for name, each in tensors.items()}
    if _counting:
        _count("from_device", known.values())
    here = known if all(each.is_cpu for each in known.values()) else _send(known, "cpu")
    return {name: each.numpy() for name, each in here.items()}


def as_floats(scalars: Mapping[Name, Tensor]) -> dict[Name, float]:
    """Return scalars of one device as numbers, by one copy that is waited for."""
    together = download({"": torch.stack([each.detach().float() for each in scalars.values()])})[""]
    return dict(zip(scalars, together.tolist(), strict=True))


@contextmanager
def counted(transfers: Transfers) -> Iterator[None]:
    """Add the transfers of all threads within to `transfers`."""
    _counting.append(transfers)
    try:
        yield
    finally:
        _counting[:] = [each for each in _counting if each is not transfers]


def _send(tensors: Mapping[Name, Tensor], device: torch.device | str) -> dict[Name, Tensor]:
    """Copies of tensors of one device on another, which are parts of one copy."""
    # The largest numbers come first, so each tensor begins at a multiple of the size of its own.
    order = sorted(tensors, key=lambda name: -tensors[name].element_size())
    # An empty array may have a stride of 0, which `view` refuses.
    flat = {name: each.contiguous().as_strided((each.numel(),), (1,)) for name, each in tensors.items()}
    packed = torch.cat([flat[name].view(torch.uint8) for name in order])
    # CUDA takes a copy of pageable memory before it returns, so the packed one may go while the transfer is on its way.
    sent = packed.to(device, non_blocking=torch.device(device).type != "cpu")
    parts = dict(zip(order, sent.split([tensors[name].nbytes for name in order]), strict=True))
    return {name: parts[name].view(each.dtype).view(each.shape) for name, each in tensors.items()}


_counting: list[Transfers] = []
_lock = Lock()


def _count(way: str, tensors: Iterable[Tensor]) -> None:
    size = sum(each.nbytes for each in tensors)
    with _lock:
        for each in _counting:
            setattr(each, way, getattr(each, way) + 1)
            setattr(each, f"bytes_{way}", getattr(each, f"bytes_{way}") + size)

"""A device to count on without a GPU: its tensors are computed on the CPU, and behave as those of a GPU do.

`DEVICE` is torch's "meta". Within `StandIn` its tensors have values, are not on the CPU (`is_cpu`, `numpy`), and meet
those of the CPU in no operation. What makes a program wait for a GPU is noted, and what crosses the bus.
"""

from __future__ import annotations

import traceback
from collections import Counter
from contextlib import nullcontext
from pathlib import Path

import torch
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils._pytree import tree_flatten, tree_map_only

DEVICE = torch.device("meta")
_WAITS = {"_local_scalar_dense", "nonzero", "masked_select", "_unique2", "unique_dim", "unique_consecutive", "equal"}
_PACKAGE = "/magrounding/"


class _OnDevice(torch.Tensor):
    """A tensor of the device; `values` is its content, on the CPU."""

    values: torch.Tensor

    @staticmethod
    def __new__(cls, values):
        own = torch.Tensor._make_wrapper_subclass(
            cls,
            values.shape,
            strides=values.stride(),
            storage_offset=values.storage_offset(),
            dtype=values.dtype,
            device=DEVICE,
        )
        own.values = values
        return own

    __torch_function__ = torch._C._disabled_torch_function_impl

    def tolist(self):
        return self.cpu().tolist()  # which torch refuses of subclasses

    @classmethod
    def __torch_dispatch__(cls, function, types, arguments=(), options=None):
        return _compute(StandIn.active, function, arguments, options or {})


class StandIn(TorchDispatchMode):
    """Counts of what one thread does on the device within.

    Attributes:
        waits: what the program waited for the device in: (operation, place in the package) → times.
        up, down: transfers to and from the device, as pairs of their number and bytes.
    """

    active: StandIn

    def __init__(self):
        super().__init__()
        self.clear()

    def clear(self):
        self.waits, self.up, self.down = Counter(), [0, 0], [0, 0]

    def __enter__(self):
        StandIn.active = self
        return super().__enter__()

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        return _compute(self, function, arguments, options or {})

    def wait(self, what):
        self.waits[what, _place()] += 1

    def sent(self, way, tensor):
        way[0] += 1
        way[1] += tensor.nbytes


def _place():
    """The innermost line of the package that is being executed."""
    for frame in reversed(traceback.extract_stack()):
        if _PACKAGE in frame.filename and "/tests/" not in frame.filename:
            return f"{Path(frame.filename).name}:{frame.name}:{frame.lineno}"
    return "?"


def _compute(counts, function, arguments, options):
    name = function._schema.name.split("::")[1]
    tensors = [each for each in tree_flatten((arguments, options))[0] if isinstance(each, torch.Tensor)]
    there = [each for each in tensors if isinstance(each, _OnDevice)]
    here = [each for each in tensors if not isinstance(each, _OnDevice) and each.dim()]
    asked = options.get("device")
    plain = tree_map_only(_OnDevice, lambda each: each.values, (arguments, options))
    if asked is not None:
        plain[1]["device"] = torch.device("cpu")
    goes_up = not there and asked is not None and torch.device(asked) == DEVICE and bool(tensors)
    comes_down = bool(there) and asked is not None and torch.device(asked).type == "cpu"
    if name == "copy_" and len(there) == 1 and here:
        goes_up, comes_down = isinstance(arguments[0], _OnDevice), not isinstance(arguments[0], _OnDevice)
    elif there and here:
        raise RuntimeError(f"{name} of tensors on two devices, in {_place()}")
    if goes_up:
        counts.sent(counts.up, tensors[-1])
        if not options.get("non_blocking") and not (name == "copy_" and arguments[2:3] == (True,)):
            counts.wait("up")
    elif comes_down:
        counts.sent(counts.down, tensors[-1])
        counts.wait("down")
    elif there and (name in _WAITS or (name == "repeat_interleave" and options.get("output_size") is None)):
        counts.wait(name)
    elif there and name in ("index", "index_put", "index_put_", "_index_put_impl_"):
        for _ in [each for each in arguments[1] if each is not None and each.dtype in (torch.bool, torch.uint8)]:
            counts.wait("mask")
    result = function(*plain[0], **plain[1])
    if comes_down and name != "copy_":
        return result
    on_device = bool(there) or (asked is not None and torch.device(asked) == DEVICE)
    if not on_device:
        return result
    wrapped = tree_map_only(torch.Tensor, lambda each: each if isinstance(each, _OnDevice) else _OnDevice(each), result)
    return return_and_correct_aliasing(function, arguments, options, wrapped)


def prepare(patch):
    """Let networks and optimisers be made on the device, by pytest's patch: torch has autocast for GPUs alone."""
    patch.setattr(torch, "autocast", lambda *_, **__: nullcontext())
    adam = torch.optim.AdamW
    patch.setattr(torch.optim, "AdamW", lambda *given, fused=None, **options: adam(*given, **options))

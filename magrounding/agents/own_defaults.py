"""Defaults of torch that a program may change, and on which no network of the package depends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

_NATIVE = torch.backends.mkldnn.is_available() and torch.ops.mkldnn._is_mkldnn_bf16_supported()
_MADE = frozenset({torch.empty, torch.zeros, torch.ones, torch.eye, torch.linspace, torch.rand, torch.randn})


@contextmanager
def own_defaults() -> Iterator[None]:
    """Compute in this thread with float32, on the CPU where no device is named, and with gradients.

    `torch.set_default_dtype` would change the type in all threads of the program: here modes of this thread stand above
    its defaults, and only where they differ.
    """
    with ExitStack() as stack:
        if torch.is_inference_mode_enabled() or not torch.is_grad_enabled():
            stack.enter_context(torch.inference_mode(False))
        if torch.get_default_dtype() is not torch.float32:
            stack.enter_context(_Float32())
        if torch.get_default_device().type != "cpu":
            stack.enter_context(torch.device("cpu"))
        yield


def bfloat16(device: torch.device, wanted: bool) -> torch.autocast:
    """Compute networks in bfloat16 within, where it is wanted and the processor has instructions for it.

    Without them (AVX2 alone) a convolution takes nine times as long as in float32.
    """
    return torch.autocast(device.type, torch.bfloat16, enabled=wanted and (device.type != "cpu" or _NATIVE))


class _Float32(TorchFunctionMode):
    """Float32 for tensors that are made without a type, and where whole numbers become floats."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        if func in _MADE and kwargs.get("dtype") is None:
            kwargs["dtype"] = torch.float32
        result = func(*args, **kwargs)
        chosen = isinstance(result, Tensor) and result.dtype is torch.get_default_dtype()
        return result.float() if chosen and not any(map(_has_type, (*args, *kwargs.values()))) else result


def _has_type(argument: Any) -> bool:
    """Return True if the type of a result comes from this argument."""
    if isinstance(argument, Tensor):
        return argument.is_floating_point()
    return isinstance(argument, np.ndarray | torch.dtype) or (
        isinstance(argument, list | tuple) and any(map(_has_type, argument))
    )

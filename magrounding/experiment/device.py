"""Choice of the device that networks compute on."""

from __future__ import annotations

import torch

from magrounding.errors import ConfigurationError, check_choice


def resolve_device(name: str) -> torch.device:
    """The device that a name stands for; ConfigurationError for one that is not there."""
    check_choice("device", name, ("auto", "cpu", "cuda"))
    if name == "cuda" and not torch.cuda.is_available():
        raise ConfigurationError("device 'cuda' was asked for, but torch sees no GPU: use 'auto' or 'cpu'")
    return torch.device("cuda" if name != "cpu" and torch.cuda.is_available() else "cpu")

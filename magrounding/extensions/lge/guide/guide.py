"""Guide: scores of actions for a task, s(τ, a) = cos(g(τ), g(a)) / λ, and its files."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import save
from torch import Tensor, nn

from magrounding.agents.building import bounded
from magrounding.agents.policy import evaluating
from magrounding.agents.weights import fit_weights, parse_tensors
from magrounding.errors import CheckpointError, ConfigurationError
from magrounding.extensions.lge.guide.encoder import HashedEncoder, LanguageModelEncoder
from magrounding.schema import Count, Positive
from magrounding.storage import ARRAYS, read_json, require_bytes, write_atomic, write_json

TEMPERATURE = 0.05
"""Temperature λ. LGE gives none; SimCSE, whose loss it takes, has .05."""

GUIDE_FILE, _WEIGHTS = "guide.json", "guide.safetensors"
_CHUNK = 1024
"""Texts in a batch."""


class Guide(nn.Module):
    """Scorer of actions by the task's text, with one encoder for both.

    Args:
        encoder: texts → vectors [U, D].
        temperature: λ. It scales the scores and changes no rank.
    """

    def __init__(self, encoder: HashedEncoder | LanguageModelEncoder, temperature: float = TEMPERATURE) -> None:
        super().__init__()
        self.encoder = encoder
        self.temperature = temperature

    def forward(self, texts: Sequence[str]) -> Tensor:
        """Return vectors [U, D] of length 1, with gradients."""
        return F.normalize(self.encoder(texts), dim=-1)

    @torch.no_grad()
    def embed(self, texts: Sequence[str]) -> Tensor:
        """Return vectors [U, D] of length 1, on the CPU."""
        with evaluating(self):
            return torch.cat([self(texts[k : k + _CHUNK]).float().cpu() for k in range(0, len(texts), _CHUNK)])

    def score(self, task: str, actions: Sequence[str]) -> np.ndarray:
        """Return [C] float32, the relevance of C actions for a task."""
        vectors = self.embed([task, *actions])
        return (vectors[1:] @ vectors[0] / self.temperature).numpy()


class _About(msgspec.Struct):
    """What GUIDE_FILE says of a Guide."""

    encoder: Literal["hashed", "language_model"]
    options: dict[str, Count]
    temperature: Positive


def save_guide(folder: Path, guide: Guide, record: dict[str, Any]) -> None:
    """Write a Guide, with metadata of its training."""
    guide.encoder.save_files(folder)
    write_atomic(folder / _WEIGHTS, save({k: v.detach().cpu().contiguous() for k, v in guide.state_dict().items()}))
    content = {"encoder": guide.encoder.kind, "options": guide.encoder.options, "temperature": guide.temperature}
    write_json(folder / GUIDE_FILE, {**content, "record": record}, sealed=True)


def load_guide(folder: Path) -> Guide:
    """Read a Guide; nothing in its files is executed.

    Raises:
        CheckpointError: files that are damaged or of something else.
        ConfigurationError: no Guide there, one that is too large, or a language model that cannot be loaded.
        MissingExtra: it reads with a language model, and `transformers` is not installed.
    """
    _require_guide(folder)
    try:
        about = msgspec.convert(read_json(folder / GUIDE_FILE), _About)
        if about.encoder == HashedEncoder.kind:
            with bounded(f"the Guide in {folder}"):
                encoder = HashedEncoder(**about.options)
        else:
            encoder = LanguageModelEncoder(folder / "model", **about.options)
    except (msgspec.ValidationError, TypeError) as error:  # also of options that it has not
        raise CheckpointError(f"{folder / GUIDE_FILE} is damaged ({error})") from None
    guide = Guide(encoder, about.temperature)
    fit_weights(guide, parse_tensors(require_bytes(folder / _WEIGHTS, ARRAYS), folder / _WEIGHTS), folder / _WEIGHTS)
    return guide.eval()


def guide_digest(folder: Path) -> str:
    """Return the SHA-256 of a Guide's weights, whatever its folder is called; errors as of `load_guide`."""
    _require_guide(folder)
    return hashlib.sha256(require_bytes(folder / _WEIGHTS, ARRAYS)).hexdigest()


def _require_guide(folder: Path) -> None:
    if not (folder / GUIDE_FILE).exists():
        raise ConfigurationError(f"there is no Guide in {folder}: train one with `magrounding guide --out {folder}`")

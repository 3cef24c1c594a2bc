"""LanguageModelEncoder: a pretrained language model, fine-tuned as in LGE (BERT-base there)."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from magrounding.agents.pretrained_language import inspect_model, load_model
from magrounding.errors import MissingExtra

_NOT_WEIGHTS = (".json", ".txt")


class LanguageModelEncoder(nn.Module):
    """The state of the first token; in training, a layer and a tanh above it (SimCSE).

    Args:
        folder: of the model, as `transformers` saves one: config.json, a tokenizer, weights as safetensors.
        tokens: of a text; longer ones are cut.

    Raises:
        ConfigurationError: a folder that holds no such model.
        MissingExtra: `transformers` is not installed.
    """

    kind = "language_model"

    def __init__(self, folder: Path, tokens: int = 32) -> None:
        super().__init__()
        width, _ = inspect_model(folder)
        if find_spec("transformers") is None:
            raise MissingExtra("a Guide on a language model", "lm")
        self.options: dict[str, Any] = {"tokens": tokens}
        self._folder = folder
        self._tokenizer, self.network = load_model(folder)
        self.head = nn.Linear(width, width)

    def forward(self, texts: Sequence[str]) -> Tensor:
        """Return vectors [U, D] of U texts."""
        tokens = self._tokenizer(
            list(texts), padding=True, truncation=True, max_length=self.options["tokens"], return_tensors="pt"
        )
        device = self.head.weight.device
        inputs = {name: tokens[name].to(device) for name in ("input_ids", "attention_mask")}
        first = self.network(**inputs).last_hidden_state[:, 0]
        return self.head(first).tanh() if self.training else first

    def save_files(self, folder: Path) -> None:
        """Copy the model's configuration, tokenizer and original weights."""
        target = folder / "model"
        if target.resolve() == self._folder.resolve():
            return
        target.mkdir(parents=True, exist_ok=True)
        for path in self._folder.iterdir():
            if path.suffix in (*_NOT_WEIGHTS, ".safetensors"):
                shutil.copyfile(path, target / path.name)

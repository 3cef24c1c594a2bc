"""States of a frozen pretrained language model, cached: each sentence is read once on a machine."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from magrounding.errors import ConfigurationError, MissingExtra
from magrounding.machine import machine_memory
from magrounding.storage import (
    ARRAYS,
    WRONG_JSON,
    open_regular,
    parse_json,
    read_bytes,
    read_text,
    reason,
    user_cache,
    user_path,
    write_atomic,
)

_TOKENIZERS = ("tokenizer.json", "vocab.txt")
_BATCH = 64
"""Sentences in a batch."""
_KEPT = 4096
"""Sentences that are kept in memory: 230 MB where a state has 768 numbers."""


class States(NamedTuple):
    """Encoding of a sentence: states [T, D] float16, and mask [T] bool, true up to its last token."""

    states: Tensor
    mask: Tensor


class PretrainedStates:
    """Token states of statements: the last hidden states of a language model.

    No torch module: the model's weights belong to no optimiser and to no checkpoint.

    Args:
        folder: of the model, as `transformers` saves one: config.json, a tokenizer, weights as safetensors.
        words: the word of each id; the model reads the words of a statement, joined by spaces.
        tokens: statements are padded to so many of the model's tokens.
        kept: folder of the cache; "": `user_cache()`.
        by_word: a state for each word, the mean over its tokens, instead of one for each token.

    Raises:
        ConfigurationError: a folder that holds no such model, or an environment without the words of its ids.
        MissingExtra: `transformers` is not installed.
    """

    def __init__(
        self, folder: str, words: Sequence[str], tokens: int, kept: str = "", *, by_word: bool = False
    ) -> None:
        if not words:
            raise ConfigurationError("this world does not say which words its ids are: no language model can read them")
        self._words = tuple(words)
        self._model = _open(folder, tokens, kept or str(user_cache()), by_word)
        self.width = self._model.width

    def __call__(self, manual: Tensor) -> tuple[Tensor, Tensor]:
        """Return states [U, S, T, width] float32 of manual [U, S, L], and mask [U, S, T], true for tokens or words."""
        lines = manual.flatten(0, 1).tolist()
        read = self._model.read([" ".join(self._words[i] for i in line if i) for line in lines])
        states, mask = (part.to(manual.device).unflatten(0, manual.shape[:2]) for part in read)
        return states.float(), mask

    def __deepcopy__(self, memo: dict[int, Any]) -> PretrainedStates:
        return self  # copies of a network read with the same model, which never changes


class LanguageModel:
    """A model, loaded when needed, and its cache in memory and on disk.

    States are kept by content (files of the model, sentence) as halves, and fresh ones are rounded too: results do not
    depend on the cache.

    Args:
        folder: of the model.
        tokens: T.
        kept: folder of the cache.
        by_word: a state for each word; the state of word i is row i, and those after the last word are zeros.
    """

    def __init__(self, folder: Path, tokens: int, kept: Path, by_word: bool) -> None:
        self.width, files = inspect_model(folder)
        self._folder, self._tokens, self._by_word = folder, tokens, by_word
        self._kept = kept / f"{_hash(files)[:32]}-{tokens}{'-words' if by_word else ''}"
        self._memory: dict[str, States] = {}  # in the order of their last use
        self._lock = Lock()  # agents read side by side

    def read(self, sentences: Sequence[str]) -> States:
        """Return states [R, T, width] float16 and mask [R, T] of R sentences."""
        order = {sentence: i for i, sentence in enumerate(dict.fromkeys(sentences))}
        with self._lock:
            found = {sentence: self._load_cached(sentence) for sentence in order}
            new = [sentence for sentence, states in found.items() if states is None]
            for start in range(0, len(new), _BATCH):
                found.update(self._compute(new[start : start + _BATCH]))
            known = {sentence: states for sentence, states in found.items() if states is not None}
            self._memory.update(known)
            for sentence in list(self._memory)[: max(0, len(self._memory) - _KEPT)]:
                del self._memory[sentence]
        rows = torch.tensor([order[sentence] for sentence in sentences])
        return States(*(torch.stack(part).index_select(0, rows) for part in zip(*known.values(), strict=True)))

    def _load_cached(self, sentence: str) -> States | None:
        """States in memory or on disk; a damaged file is as good as none."""
        if sentence in self._memory:
            return self._memory.pop(sentence)
        try:
            return States(**load(read_bytes(self._file(sentence), ARRAYS)))
        except (OSError, SafetensorError, TypeError):
            return None

    @torch.no_grad()
    def _compute(self, sentences: list[str]) -> dict[str, States]:
        """Compute and keep the states of sentences."""
        tokenizer, network = self._loaded
        texts = [sentence.split() for sentence in sentences] if self._by_word else sentences
        tokens = tokenizer(
            texts, is_split_into_words=self._by_word, padding="max_length", max_length=self._tokens, return_tensors=None
        )
        for sentence, ids in zip(sentences, tokens["input_ids"], strict=True):
            if len(ids) > self._tokens:
                raise ConfigurationError(
                    f"{sentence!r} has {len(ids)} tokens, more than {self._tokens}: raise the option tokens"
                )
        inputs = {name: torch.tensor(rows) for name, rows in tokens.items()}
        with torch.autocast("cpu", enabled=False):
            states = network(**inputs).last_hidden_state.half()
        read = {
            sentence: _of_words(rows, tokens.word_ids(i)) if self._by_word else States(rows.clone(), mask)
            for i, (sentence, rows, mask) in enumerate(
                zip(sentences, states, inputs["attention_mask"].bool(), strict=True)
            )
        }
        for sentence, parts in read.items():
            write_atomic(self._file(sentence), save({k: v.contiguous() for k, v in parts._asdict().items()}))
        return read

    @cached_property
    def _loaded(self) -> tuple[Any, Any]:
        tokenizer, network = load_model(self._folder)
        return tokenizer, network.eval()

    def _file(self, sentence: str) -> Path:
        return self._kept / f"{hashlib.sha256(sentence.encode()).hexdigest()}.safetensors"


@cache
def _open(folder: str, tokens: int, kept: str, by_word: bool) -> LanguageModel:
    """One model for all agents of a process."""
    return LanguageModel(user_path(folder), tokens, user_path(kept), by_word)


def _of_words(states: Tensor, words: Sequence[int | None]) -> States:
    """Means over the tokens of each word, from states [T, D] of tokens and the word of each token, if any."""
    spoken = torch.tensor([word is not None for word in words])
    owner = torch.tensor([word for word in words if word is not None], dtype=torch.int64)
    count = torch.bincount(owner, minlength=len(words))
    total = torch.zeros(states.shape).index_add(0, owner, states[spoken].float())
    return States((total / count.clamp(min=1).unsqueeze(1)).half(), count > 0)


def load_model(folder: Path) -> tuple[Any, Any]:
    """Load the tokenizer and the network of a folder, from there and from nowhere else; see `inspect_model`."""
    from transformers import AutoModel, AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        network, info = AutoModel.from_pretrained(
            folder, local_files_only=True, use_safetensors=True, output_loading_info=True
        )
    except Exception as error:  # transformers raises whatever its parts do
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ConfigurationError(f"transformers cannot load the model in {folder}: {reason}") from None
    lacking = [name for name in info["missing_keys"] if "pooler" not in name]  # which no token's state needs
    if lacking:
        raise ConfigurationError(f"the weights in {folder} lack {lacking[0]} and {len(lacking) - 1} more")
    return tokenizer, network.float()


def inspect_model(folder: Path) -> tuple[int, list[Path]]:
    """Return the width of a model's states and the files that decide them.

    Raises:
        ConfigurationError: a folder that holds no model.
        MissingExtra: `transformers` is not installed.
    """
    files = sorted(path for kind in ("safetensors", "json", "txt") for path in folder.glob(f"*.{kind}"))
    try:
        width = int(parse_json(read_text(folder / "config.json"))["hidden_size"])
    except (OSError, *WRONG_JSON):
        width = 0
    if not width or not any(folder.glob("*.safetensors")) or not any(path.name in _TOKENIZERS for path in files):
        raise ConfigurationError(
            f"there is no language model in {folder}: one has weights as safetensors (pickles are never loaded), "
            f"{' or '.join(_TOKENIZERS)}, and a config.json that says its hidden_size"
        )
    for path in files:  # transformers would wait for a pipe for ever
        try:
            with open_regular(path, machine_memory()):
                pass
        except OSError as error:
            raise ConfigurationError(f"{path} cannot be read: {reason(error)}") from None
    if find_spec("transformers") is None:
        raise MissingExtra("reading with a language model", "lm")
    return width, files


def _hash(files: Sequence[Path]) -> str:
    """SHA-256 over names and contents."""
    total = hashlib.sha256()
    for path in files:
        with open_regular(path, machine_memory()) as file:
            total.update(path.name.encode() + hashlib.file_digest(file, "sha256").digest())
    return total.hexdigest()

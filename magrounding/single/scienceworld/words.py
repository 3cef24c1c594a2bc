"""The words of ScienceWorld's texts: a list that `tools.scienceworld.collect` has made, and everything else spelt."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path

from magrounding.single.tokenizer import Tokenizer

WORDS_FILE = Path(__file__).with_name("data") / "words.json"


@lru_cache(maxsize=1)
def tokenizer() -> Tokenizer:
    """Return the tokenizer of ScienceWorld's texts."""
    return Tokenizer(json.loads(WORDS_FILE.read_text(encoding="utf-8"))["words"])

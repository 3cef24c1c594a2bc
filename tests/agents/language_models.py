"""A language model for tests: a BERT of one layer with random weights, and a tokenizer that knows parts of words."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch


def tiny_bert(folder: Path) -> Path:
    """Write one to a folder; the test is skipped where `transformers` is absent."""
    transformers = pytest.importorskip("transformers", reason="the extra `lm` is absent: transformers")
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    pieces = "[PAD] [UNK] [CLS] [SEP] the mage flee ##s carry ##ing message . un ##read ##able".split()
    tokenizer = Tokenizer(models.WordPiece({piece: i for i, piece in enumerate(pieces)}, unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]"
    )
    fast.save_pretrained(folder)
    torch.manual_seed(0)
    sizes = {"hidden_size": 12, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    network = transformers.BertModel(transformers.BertConfig(vocab_size=len(pieces), **sizes))
    network.save_pretrained(folder)
    return folder

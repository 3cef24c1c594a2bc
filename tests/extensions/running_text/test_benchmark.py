"""The ablation of the reader of running text: a reader for each variant and seed, and one page of them."""

import json
from dataclasses import replace

import pytest

from benchmarks import reading
from magrounding.cli.command import CommandLine
from magrounding.extensions.running_text import segmenting

RUN = "pretrained:ma_rtfm-s6-2agents"


@pytest.fixture(autouse=True)
def fast(monkeypatch):
    monkeypatch.setattr(segmenting, "GAMES", 32)
    monkeypatch.setattr(segmenting, "ROUNDS", 1)
    variants = {name: replace(variant, steps=2) for name, variant in reading.VARIANTS.items()}
    monkeypatch.setattr(reading, "VARIANTS", variants)


def test_every_variant_is_a_reader_that_plays(tmp_path):
    line = ["--run", RUN, "--out", str(tmp_path), "--seeds", "1", "--games", "2", "--variants", "narrow,vectors,half"]
    assert CommandLine(reading.PROG, tuple(line)).run(reading) == 0
    readers = json.loads((tmp_path / "reading.json").read_text())["readers"]
    assert [each["variant"] for each in readers] == ["narrow", "vectors", "half"]
    assert all(set(each["wins"]) == set(reading.HELD_OUT) for each in readers)
    page = (tmp_path / "reading.md").read_text()
    assert page.count("| half") == 4


def test_words_of_no_training_text_share_a_vector(tmp_path):
    alike, whole = (reading.learn(RUN, reading.VARIANTS[name], 0, tmp_path)[0] for name in ("vectors", "whole"))
    others = [word for word, letter in zip(alike.spelling, alike.letters, strict=True) if letter == 0]
    unknown = others.count("")
    assert 50 < unknown < len(others) / 2
    assert len(alike.embeddings().unique(dim=0)) == len(whole.embeddings().unique(dim=0)) - unknown + 1

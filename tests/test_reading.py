"""What is read is a regular file of a bounded size, JSON and TOML of a bounded depth: in one place for all readers."""

import gzip
import os
import shutil
from pathlib import Path

import pytest

import magrounding as mg
from magrounding.agents.pretrained_language import inspect_model
from magrounding.envs.messenger.manual import find_corpus
from magrounding.envs.rtfm.sentences import find_sentences
from magrounding.errors import ConfigurationError, MagroundingError
from magrounding.experiment.checkpoint import load_checkpoint
from magrounding.experiment.config import read_config
from magrounding.experiment.metrics import read_metrics
from magrounding.extensions.language_models.models import read_models
from magrounding.extensions.lge.drrn.pieces import Pieces
from magrounding.extensions.lge.guide import load_guide
from magrounding.extensions.people.web.study import Study
from magrounding.pretrained import find_run
from magrounding.run_folder import RunFolder
from magrounding.single.alfworld.games import read_game
from magrounding.single.scienceworld.trajectories import read_trajectories
from magrounding.single.script import Script
from magrounding.single.touchdown.files import read_words
from magrounding.storage import parse_json, parse_toml, read_bytes, read_json, unpacked, write_json
from magrounding.teams.saved_games import read_episodes
from magrounding.training.demonstrations import Demonstrations


def sparse(path):
    with path.open("wb") as file:
        file.truncate(2**32)


KINDS = {
    "pipe": os.mkfifo,
    "device": lambda path: path.symlink_to("/dev/zero"),
    "folder": lambda path: path.mkdir(),
    "sparse": sparse,
}
"""Name → what puts it at a path."""

ORIGIN = {"env": "ma_rtfm", "vocabulary_hash": None, "num_agents": 2}

READERS = {
    "config.json": lambda folder: read_config(folder),
    "baselines.json": lambda folder: RunFolder(folder).baselines(),
    "s1/state.json": mg.load_team,
    "s1/agent_0.safetensors": mg.load_team,
    "metrics.jsonl": lambda folder: read_metrics(folder / "metrics.jsonl"),
    "checkpoint.safetensors": lambda folder: load_checkpoint(folder / "checkpoint.safetensors", **ORIGIN),
    "games.jsonl": lambda folder: read_episodes(folder / "games.jsonl"),
    "demos.npz": lambda folder: Demonstrations.load(folder / "demos.npz"),
    "moves.txt": lambda folder: Script.load(folder / "moves.txt"),
    "study.toml": lambda folder: Study.read(folder / "study.toml", None),  # type: ignore[arg-type]
    "sentences.json": lambda folder: find_sentences(str(folder / "sentences.json"), language=True),
    "text_train.json": lambda folder: find_corpus(str(folder)),
    "pieces.json": lambda folder: Pieces.load(folder / "pieces.json"),
    "guide.json": load_guide,
    "model.safetensors": inspect_model,
    "gold.jsonl": lambda folder: read_trajectories(folder / "gold.jsonl"),
    "game.tw-pddl": lambda folder: read_game(folder / "game.tw-pddl"),
    "words.json": read_words,
}
"""File of a run's folder, or another → what reads it."""


@pytest.fixture
def run(tmp_path):
    return Path(shutil.copytree(find_run("pretrained:ma_rtfm-s1-2agents"), tmp_path / "run"))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes have no names here")
@pytest.mark.timeout(120)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", READERS)
def test_what_is_no_file_or_too_large_is_refused(run, name, kind, monkeypatch):
    monkeypatch.setattr("magrounding.experiment.checkpoint.machine_memory", lambda: 2**30)  # it reads as much
    if name == "model.safetensors":
        (run / "tokenizer.json").write_text("{}")
        (run / "config.json").write_text('{"hidden_size": 8}')
    (run / name).unlink(missing_ok=True)
    KINDS[kind](run / name)
    if (name, kind) == ("model.safetensors", "sparse"):
        return  # nothing is read of it here, and a language model may have gigabytes
    with pytest.raises(MagroundingError) as refused:
        READERS[name](run)
    assert (run / name).name in str(refused.value)


@pytest.mark.parametrize("depth", [65, 900, 100_000])
def test_what_is_nested_deep_is_refused(tmp_path, depth):
    with pytest.raises(ValueError):
        parse_json("[" * depth + "]" * depth)
    with pytest.raises(ValueError):
        parse_toml("a = " + "[" * depth + "]" * depth)
    (tmp_path / "study.toml").write_text("a = " + "[" * depth + "]" * depth)
    with pytest.raises(ConfigurationError):
        Study.read(tmp_path / "study.toml", None)  # type: ignore[arg-type]


def test_an_integer_that_no_error_could_print_is_refused(tmp_path):
    (tmp_path / "models.toml").write_text('[a]\nurl = "http://x/v1"\nmodel = "m"\nmax_tokens = 0x' + "f" * 5000)
    with pytest.raises(ConfigurationError):
        read_models(tmp_path / "models.toml")


def test_what_is_allowed_is_read(tmp_path):
    deep = "[" * 64 + "]" * 64
    assert repr(parse_json(deep)) == deep
    text = '# A comment. With words. And dots...\nask = "One. Two. Three? 1.5. ' + "Go on. " * 20 + '"\na.b.c = 1.5\n'
    assert parse_toml(text)["a"] == {"b": {"c": 1.5}}
    (tmp_path / "file").write_bytes(b"12345")
    assert read_bytes(tmp_path / "file", 5) == b"12345"
    with pytest.raises(OSError):
        read_bytes(tmp_path / "file", 4)
    packed = gzip.compress(bytes(1000)) + gzip.compress(b"1")
    assert unpacked(packed, 1001) == bytes(1000) + b"1"
    with pytest.raises(ValueError):
        unpacked(packed, 1000)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("env", ["ma_rtfm"]),
        ("agent", ["txt2pi"]),
        ("stages", [["s1"]]),
        ("stages", "s1"),
        ("seeds", [["0"]]),
        ("network", [1]),
        ("env_options", ["split"]),
        ("env_options", {"split": ["eval"]}),
        ("agents", [2]),
    ],
)
def test_lists_where_strings_belong(run, path, value):
    """In a file that was sealed again: whoever can write can seal."""
    write_json(run / "config.json", {**read_json(run / "config.json"), path: value}, sealed=True)
    for read in (mg.load_team, read_config):
        with pytest.raises(MagroundingError):
            read(run)


@pytest.mark.parametrize(
    ("path", "value"),
    [("files", ["agent_0.safetensors"]), ("files", {"agent_0.safetensors": ["a"]}), ("env", ["x"]), ("agents", [2])],
)
def test_lists_where_strings_belong_in_the_record_of_weights(run, path, value):
    state = run / "s1" / "state.json"
    write_json(state, {**read_json(state), path: value}, sealed=True)
    with pytest.raises(MagroundingError):
        mg.load_team(run)


@pytest.mark.parametrize(
    "content", [{"s1/eval": None}, {"s1/eval": {"random": [1]}}, {"s1/eval": {"random": {"a": []}}}]
)
def test_lists_where_results_of_players_belong(run, content):
    write_json(run / "baselines.json", content, sealed=True)
    with pytest.raises(MagroundingError):
        RunFolder(run).baselines()
    right = {"s1/eval": {"random": {"games": 8, "win_rate": 0.5, "length": None}}}
    write_json(run / "baselines.json", right, sealed=True)
    assert RunFolder(run).baselines() == right


@pytest.mark.parametrize(
    "network", [{"similarity": 10**7}, {"meaning": 10**7}, {"motion": 2**31 - 1}, {"similarity": 2**40}]
)
def test_a_network_of_terabytes_is_not_built(run, network):
    config = read_json(run / "config.json")
    write_json(run / "config.json", {**config, "network": {**config["network"], **network}}, sealed=True)
    with pytest.raises(MagroundingError):
        mg.load_team(run)
    with pytest.raises(MagroundingError):
        read_config(run).make_network()

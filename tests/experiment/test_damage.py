"""Whatever happens to a run's files: what was written is read, or one sentence says which file is not as it was."""

import json
import random
import shutil
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
import torch

import magrounding as mg
from magrounding.errors import CheckpointError, MagroundingError, RegistrationError
from magrounding.experiment import evaluate as evaluation
from magrounding.experiment import seed_run
from magrounding.experiment.checkpoint import load_checkpoint
from magrounding.experiment.config import read_config
from magrounding.experiment.metrics import read_metrics
from magrounding.run_folder import METRICS_FILE, RunFolder
from magrounding.storage import partial_path, read_json, write_json
from tests.experiment.tiny_runs import (
    Killed,
    killed_run,
    learn,
    phases_of,
    resume,
    timeless,
    tiny_settings,
    weights_of,
)

BRIEF = {
    "phases": phases_of(90),
    "stages": ("s1",),
    "every": None,
    "final_sets": ("train",),
}
FILES = ("config.json", "baselines.json", "metrics.jsonl", "checkpoint.safetensors", "s1/state.json")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "whole"
    learn(tiny_settings(**BRIEF), folder)
    return folder


@pytest.fixture(scope="module")
def halfway(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "killed"
    killed_run(tiny_settings(**BRIEF), folder, lambda position: position["steps"] == 60)
    return folder


@pytest.fixture
def copy(tmp_path):
    """A function that copies a run's folder, to be damaged."""
    return lambda folder: Path(shutil.copytree(folder, tmp_path / "run"))


def edit(path, old, new):
    data = path.read_bytes()
    assert old in data
    path.write_bytes(data.replace(old, new, 1))


@pytest.mark.parametrize("stops", [(4, 1), (1, 3, 0)])
def test_stops_within_one_report(finished, tmp_path, monkeypatch, stops):
    """Ctrl-C among the evaluations of a report, again after it was resumed: nothing is counted twice."""
    evaluate, folder = evaluation.play_set, tmp_path / "run"
    for last in stops:
        done = count()

        def stopped(*arguments, done=done, last=last, **options):
            if next(done) == last:
                raise KeyboardInterrupt
            return evaluate(*arguments, **options)

        monkeypatch.setattr(evaluation, "play_set", stopped)
        with pytest.raises(KeyboardInterrupt):
            learn(tiny_settings(**BRIEF), folder, resume=folder.exists())
        evaluations = [line for line in read_metrics(folder / METRICS_FILE) if line["kind"] == "evaluation"]
        assert len(evaluations) == last
    monkeypatch.setattr(evaluation, "play_set", evaluate)
    resume(folder)
    assert timeless(folder) == timeless(finished)
    assert torch.equal(weights_of(folder, "s1"), weights_of(finished, "s1"))


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("checkpoint.safetensors", b'"F32"', b'"I32"'),
        ("checkpoint.safetensors", rb"\"stage\": 0", rb"\"stage\": 9"),
        ("checkpoint.safetensors", rb"\"seed\": 0", rb"\"seed\": 7"),
        ("checkpoint.safetensors", rb"\"format\": 4", rb"\"format\": 3"),
        ("config.json", b'"value_coefficient": 0.5', b'"value_coefficient": 8.5'),
        ("metrics.jsonl", b'"games": ', b'"games": 1'),
        ("metrics.jsonl", b'"games"', b'"ga\xffes"'),
        ("metrics.jsonl", b'"kind"', b'"kimd"'),
        ("metrics.jsonl", b'{"kind"', b'x"kind"'),
    ],
)
def test_a_damaged_run_is_not_gone_on_with(halfway, copy, name, old, new):
    folder = copy(halfway)
    edit(folder / name, old, new)
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    with pytest.raises(CheckpointError):
        resume(folder)
    assert before == {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def with_config(run, **changes):
    content = {**run.config(), **changes}
    run.config_file.unlink()
    run.write_config(content)
    return run.path


def test_a_run_without_a_seed_is_refused_by_whatever_reads_it(finished, copy):
    folder = with_config(RunFolder(copy(finished)), seeds=[])
    for reads in (mg.load_team, read_config):
        with pytest.raises(CheckpointError):
            reads(folder)


@pytest.mark.parametrize("changes", [{"agent": "attends"}, {"env": "my_world"}])
def test_what_is_registered_elsewhere_is_no_damage(finished, copy, changes):
    folder = with_config(RunFolder(copy(finished)), **changes)
    for reads in (mg.load_team, read_config):
        with pytest.raises(RegistrationError):
            reads(folder)


def test_settings_changed_with_care_are_not_those_of_the_checkpoint(halfway, copy):
    """A file that a person edited and sealed again."""
    folder = copy(halfway)
    config = read_json(folder / "config.json")
    config["phases"]["*"][0]["learner"]["value_coefficient"] = 8.5
    write_json(folder / "config.json", config, sealed=True)
    with pytest.raises(CheckpointError):
        resume(folder)
    with pytest.raises(CheckpointError):
        learn(tiny_settings(**BRIEF), folder, resume=True)


@pytest.mark.parametrize("trained", ["s1", "s1/imitate"])
def test_a_checkpoint_that_is_gone_is_not_trained_over(finished, copy, trained):
    """Weights of a stage, or of a phase within it, say that there was one."""
    folder = copy(finished)
    (folder / "checkpoint.safetensors").unlink()
    if trained != "s1":
        shutil.move(folder / "s1", folder / "weights")
        (folder / trained).parent.mkdir()
        shutil.move(folder / "weights", folder / trained)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    with pytest.raises(CheckpointError):
        resume(folder)
    assert before == {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_run_killed_before_its_first_checkpoint_begins_again(finished, tmp_path, monkeypatch):
    def die(*arguments):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(seed_run, "save_checkpoint", die)
        with pytest.raises(Killed):
            learn(tiny_settings(**BRIEF), tmp_path / "run")
    assert (tmp_path / "run" / METRICS_FILE).stat().st_size
    resume(tmp_path / "run")
    assert timeless(tmp_path / "run") == timeless(finished)


def test_lines_lost_doubled_or_moved(finished, copy):
    path = copy(finished) / METRICS_FILE
    first, second, third, *more = path.read_bytes().splitlines(keepends=True)
    for lines in ([first, third, *more], [first, second, second, third, *more], [second, first, third, *more]):
        path.write_bytes(b"".join(lines))
        with pytest.raises(CheckpointError):
            read_metrics(path)


def test_only_the_last_line_may_be_cut_short(finished, copy):
    path = copy(finished) / METRICS_FILE
    whole = path.read_bytes()
    for size in range(len(whole) - 150, len(whole)):
        path.write_bytes(whole[:size])
        assert len(read_metrics(path)) == whole[:size].count(b"\n")
    path.write_bytes(whole[:-1] + b"!")
    with pytest.raises(CheckpointError):
        read_metrics(path)


@pytest.mark.parametrize("name", [*FILES, "s1/agent_0.safetensors"])
def test_one_bad_byte_anywhere(finished, copy, name):
    """In 25 places of each file of a run: a sentence, or exactly what was read before."""
    folder = copy(finished)
    path, draw = folder / name, random.Random(0)
    whole, before = path.read_bytes(), everything(folder)
    header = 2 * 8 + int.from_bytes(whole[:8], "little") if path.suffix == ".safetensors" else len(whole)
    refused = 0
    for _ in range(25):
        place = draw.randrange(min(header, len(whole)))  # of tensors, mostly what says how they are to be read
        bad = draw.choice([whole[place] ^ 1, whole[place] ^ 16, 0, 255])
        path.write_bytes(whole[:place] + bytes([bad]) + whole[place + 1 :])
        told = complaint(folder, before)
        assert path.name in told or not told
        refused += bool(told)
    assert refused > 12  # blanks between numbers are many


def complaint(folder, before):
    """What is said of a folder; nothing where all is as it was before."""
    try:
        assert everything(folder) == before
    except MagroundingError as error:
        return str(error)
    return ""


def everything(folder):
    """All that the files of a run's folder say, in a form that can be compared."""
    settings = read_config(folder)
    record, tensors = load_checkpoint(folder / "checkpoint.safetensors", **settings.resolve().origin)
    team = mg.load_team(folder)
    weights = [p for policy in team.policies for p in policy.parameters()]
    return (
        settings,
        read_json(folder / "config.json"),
        RunFolder(folder).baselines(),
        read_metrics(folder / METRICS_FILE),
        json.dumps(record),
        {name: (tensor.dtype, tensor.shape, tensor.numpy().tobytes()) for name, tensor in tensors.items()},
        [p.detach().numpy().tobytes() for p in weights],
    )


def test_what_killed_saves_left_is_removed(halfway, copy):
    folder = copy(halfway)
    left = [partial_path(folder / "checkpoint.safetensors"), folder / "s1" / ".state.json.17.partial"]
    (folder / "s1").mkdir(exist_ok=True)
    kept = [folder / ".notes.partial", folder / "my.17.partial"]
    for path in (*left, *kept):
        path.write_text("half")
    resume(folder)
    assert not any(path.exists() for path in left)
    assert all(path.exists() for path in kept)  # a person's own


def test_words_workers_and_other_stages_are_no_settings():
    settings = tiny_settings(**BRIEF)
    phases = {**settings.phases, "s4": phases_of(7)["*"]}  # of a stage that it has not
    words = replace(settings, workers=3, about="In other words.", phases=phases)
    assert words.digest == settings.digest
    fewer = replace(settings, evaluation=replace(settings.evaluation, report_games=9))
    for other in (replace(settings, seeds=(1,)), fewer):
        assert other.digest != settings.digest


def test_a_folder_that_is_moved_while_its_run_trains(tmp_path, monkeypatch, capfd):
    """One sentence, and the run goes on where the folder is put back; nothing is written where it was."""
    save, moved = seed_run.save_checkpoint, tmp_path / "moved"

    def save_and_move(path, record, tensors):
        save(path, record, tensors)
        if record["position"]["steps"] == 60:
            (tmp_path / "run").rename(moved)

    monkeypatch.setattr(seed_run, "save_checkpoint", save_and_move)
    with pytest.raises(CheckpointError):
        learn(tiny_settings(**BRIEF), tmp_path / "run")
    monkeypatch.undo()
    assert capfd.readouterr().err == ""
    assert [path.name for path in tmp_path.iterdir()] == ["moved"]
    (moved / "owner.json").unlink(missing_ok=True)  # of this very process, which is alive
    resume(moved)
    assert RunFolder(moved).report.exists()

"""The command of tables: it trains what is missing and nothing else, and refuses nonsense in one sentence."""

import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from benchmarks.tables import TABLES, __main__, runs
from benchmarks.tables.layout import QUICK, Cell, Row, Table, Training
from benchmarks.tables.lge import GUIDE, with_guide
from benchmarks.tables.messenger import with_corpus
from benchmarks.tables.runs import Job, jobs_of
from benchmarks.tables.silg import SILG
from magrounding.envs.published import PublishedResult
from magrounding.experiment import evaluate as evaluation
from magrounding.experiment.curriculum import run_curriculum
from magrounding.extensions.lge.guide import Guide, save_guide
from magrounding.extensions.lge.guide.encoder import HashedEncoder
from magrounding.storage import read_json
from magrounding.teams.scripted import RandomTeam
from tests.envs.people_corpus import small_corpus, write_corpus
from tests.experiment.tiny_runs import TINY, killed_run, phases_of, quiet, weights_of
from tests.full import in_the_full_suite

BRIEF = replace(
    TINY,
    preset="quick",
    phases=phases_of(60),
    evaluation=replace(TINY.evaluation, every=None, final_sets=("train", "eval")),
    save_every=0.0,
)
QUICK_PRESET = "magrounding.experiment.presets.rtfm.QUICK_MA_RTFM"
PAPER = PublishedResult(0.61, 0.01, "nobody")


def row(id, *stages, agent="relread", presets=QUICK, **changes):
    training, last = Training(agent, stages, **changes), stages[-1]
    cells = {"train": Cell(training, last, "train"), "eval": Cell(training, last, "eval", PAPER)}
    return Row(id, id.capitalize(), cells, presets)


SHORT, LONG = row("short", "s1"), row("long", "s1", "s2")
TABLE = Table("tiny", "A tiny table", "ma_rtfm", ("train", "eval"), (LONG, SHORT), 2, curves=True)


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    """The table and its preset; the networks are those of `tiny_runs`, which take next to no time."""
    monkeypatch.setitem(TABLES, "tiny", TABLE)
    monkeypatch.setattr(QUICK_PRESET, BRIEF)
    monkeypatch.setattr(evaluation, "make_expert", lambda vec: RandomTeam(vec.num_agents, 5))
    monkeypatch.setattr(
        runs, "run_curriculum", lambda *args, **options: run_curriculum(*args, **options, display=quiet())
    )


def command(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["tables", *map(str, arguments)])
    return __main__.main()


def state(folder):
    """Every file with the time of its last change, but for the tables."""
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*/*") if path.is_file()}


def cells(text):
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_it_trains_what_is_missing_and_nothing_else(monkeypatch, tmp_path, capsys):
    assert command(monkeypatch, "tiny", "--seeds", "0", "--rows", "short", "--out", tmp_path) == 0
    heads, _, long, short, *_ = cells((tmp_path / "tiny-quick.md").read_text())
    assert heads[-2:] == ["train", "eval"]
    assert long[-2:] == ["not run (–)", "not run (61.0 % ± 1.0 %)"]
    assert short[1:4] == ["reinforcement alone", "1", "60"]
    assert short[-1].endswith(" % (61.0 % ± 1.0 %)")
    first = state(tmp_path)

    assert command(monkeypatch, "tiny", "--seeds", "0,1", "--out", tmp_path) == 0
    assert first.items() <= state(tmp_path).items()
    names = {path.parent.relative_to(tmp_path).as_posix() for path in tmp_path.glob("*/*/config.json")}
    assert names == {f"ma_rtfm-relread-2-quick-{stages}/seed_{k}" for stages in ("s1", "s1-s2") for k in (0, 1)}
    for k in (0, 1):  # the longer run went on from the shorter
        of_long = tmp_path / "ma_rtfm-relread-2-quick-s1-s2" / f"seed_{k}"
        assert read_json(of_long / "config.json")["branched_from"].endswith(f"quick-s1/seed_{k}")
        assert torch.equal(
            weights_of(of_long, "s1"), weights_of(tmp_path / f"ma_rtfm-relread-2-quick-s1/seed_{k}", "s1")
        )
    both, page = state(tmp_path), (tmp_path / "tiny-quick.md").read_text()
    assert [line[2:4] for line in cells(page)[2:4]] == [["2", "120"], ["2", "60"]]
    assert "(tiny-quick.png)" in page
    assert (tmp_path / "tiny-quick.png").read_bytes().startswith(b"\x89PNG")

    monkeypatch.setattr(runs, "run_curriculum", None)
    assert command(monkeypatch, "tiny", "--seeds", "0,1", "--out", tmp_path) == 0
    assert capsys.readouterr().out.count("is finished already") == 4 + 1
    assert state(tmp_path) == both
    assert (tmp_path / "tiny-quick.md").read_text() == page


@pytest.mark.slow
@in_the_full_suite("half a core minute")
def test_processes_side_by_side_fill_the_same_table(monkeypatch, tmp_path):
    """The longer runs wait for the shorter ones, from which they go on; one that fails keeps its own from beginning."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    learn = ("tiny", "--seeds", "0,1", "--device", "cpu", "--out")
    assert command(monkeypatch, *learn, tmp_path / "one") == 0
    broken = jobs_of(TABLE, SHORT, "quick", 1.0)[0].folder(tmp_path / "two", 1)
    killed_run(jobs_of(TABLE, SHORT, "quick", 1.0)[0].settings(1), broken, lambda position: position["steps"] >= 30)
    checkpoint = (broken / "checkpoint.safetensors").read_bytes()
    (broken / "checkpoint.safetensors").write_bytes(checkpoint[:-1])
    assert command(monkeypatch, *learn, tmp_path / "two", "--jobs", 2) == 2
    assert {path.parent.name for path in tmp_path.glob("two/*-s2/*/report.md")} == {"seed_0"}
    (broken / "checkpoint.safetensors").write_bytes(checkpoint)
    assert command(monkeypatch, *learn, tmp_path / "two", "--jobs", 2) == 0
    for one in (tmp_path / "one").rglob("agent_0.safetensors"):
        assert one.read_bytes() == (tmp_path / "two" / one.relative_to(tmp_path / "one")).read_bytes()
    ours, theirs = (cells((tmp_path / out / "tiny-quick.md").read_text())[2:4] for out in ("two", "one"))
    assert [row[:4] for row in ours] == [row[:4] for row in theirs]


def test_an_interrupted_run_goes_on(monkeypatch, tmp_path):
    job = jobs_of(TABLE, LONG, "quick", 1.0)[0]
    broken = job.folder(tmp_path / "broken", 0)
    killed_run(job.settings(0), broken, lambda position: position["stage"] == 1 and position["steps"] >= 30)
    arguments = ("tiny", "--seeds", "0", "--rows", "long", "--device", "cpu")
    for out in ("broken", "whole"):
        assert command(monkeypatch, *arguments, "--out", tmp_path / out) == 0
    whole = job.folder(tmp_path / "whole", 0)
    assert torch.equal(weights_of(broken, "s2"), weights_of(whole, "s2"))
    ours, theirs = (cells((tmp_path / out / "tiny-quick.md").read_text())[2] for out in ("broken", "whole"))
    assert (ours[:4], ours[5:]) == (theirs[:4], theirs[5:])  # all but the time


def test_a_guide_in_another_folder_is_read_and_its_runs_are_others(tmp_path):
    table, folders = TABLES["lge_table3"], [tmp_path / name for name in ("one", "same", "other")]
    for seed, folder in zip((0, 0, 1), folders, strict=True):
        torch.manual_seed(seed)
        save_guide(folder, Guide(HashedEncoder(buckets=512, width=8, hidden=8)), {})
    (usual, *_), (one, *_), (same, *_), (other, *_) = (
        [job for row in told.rows for job in jobs_of(told, row, "quick", 1.0) if job.training.agent == "lge"]
        for told in (with_guide(table, Path(folder)) for folder in (GUIDE, *folders))
    )
    assert usual.name == "scienceworld-lge-1-quick_lge-find-non-living-thing", "runs already made are found again"
    assert one.settings(0).network["guide"] == str(folders[0])
    assert one.name == same.name != other.name
    assert re.fullmatch(usual.name + "-guide-[0-9a-f]{8}", one.name)
    plain = [job.name for row in table.rows[:2] for job in jobs_of(table, row, "quick", 1.0)]
    told = with_guide(table, folders[0])
    assert plain == [job.name for row in told.rows[:2] for job in jobs_of(told, row, "quick", 1.0)]


@pytest.mark.parametrize(
    "arguments",
    [["endi_table9"], ["tiny", "--rows", "long,tall"], ["tiny", "--seeds", "1,1"], ["tiny", "--budget", "0"]],
)
def test_bad_input_is_refused_before_anything_is_trained(monkeypatch, tmp_path, arguments):
    assert command(monkeypatch, *arguments, "--out", tmp_path / "out") == 2
    assert not (tmp_path / "out").exists()


def test_an_agent_that_is_not_here_is_a_row_without_a_number(monkeypatch, tmp_path):
    monkeypatch.setitem(TABLES, "tiny", replace(TABLE, rows=(row("unheard", "s1", agent="gpt"), SHORT)))
    assert command(monkeypatch, "tiny", "--seeds", "0", "--out", tmp_path) == 0
    assert cells((tmp_path / "tiny-quick.md").read_text())[2][-2] == "not run (–)"
    assert command(monkeypatch, "tiny", "--rows", "unheard", "--out", tmp_path) == 2


def test_a_run_of_other_settings_is_not_taken_for_this_one(monkeypatch, tmp_path, capsys):
    arguments = ("tiny", "--seeds", "0", "--rows", "short", "--out", tmp_path)
    assert command(monkeypatch, *arguments) == 0
    assert command(monkeypatch, *arguments, "--budget", "0.5") == 0  # a folder and a table of its own
    assert cells((tmp_path / "tiny-quick-x0.5.md").read_text())[3][3] == "30"
    monkeypatch.setattr(QUICK_PRESET, replace(BRIEF, team_reward=0.5))
    assert command(monkeypatch, *arguments) == 2
    assert command(monkeypatch, *arguments, "--no-train") == 0  # other rows can still be shown
    assert "not run: the run in" in (tmp_path / "tiny-quick.md").read_text()


def test_what_a_training_changes_of_its_preset(monkeypatch):
    phases = {"s1": phases_of(30)["*"], **BRIEF.phases}
    monkeypatch.setattr(QUICK_PRESET, replace(BRIEF, phases=phases))
    job = Job(Training("relread", ("s3", "s2"), budget_of="s1", size=10), "ma_rtfm", 2, "quick", 2.0)
    (first, begun), (last, ended) = job.settings(7).walk()
    assert (first, begun.until.steps, begun.env_options) == ("s3", 60, {})
    assert (last, ended.until.steps, ended.env_options) == ("s2", 120, {"size": 10})
    assert job.settings(7).seeds == (7,)
    (shorter,) = job.beginnings()
    assert shorter.training == Training("relread", ("s3",), budget_of="s1")
    assert shorter.name != job.name


def test_what_runs_begin_with_is_learnt_once():
    jobs = [job for row in TABLES["rtfm_table3"].rows[:2] for job in jobs_of(TABLES["rtfm_table3"], row, "quick", 1.0)]
    stages = [(job.training.stages, job.training.size) for job in runs.in_order([*jobs, *jobs])]
    whole = ("simple_stationary", "simple", "group", "nl")
    assert stages == [(whole[:1], None), (whole[:2], None), (whole[:3], None), (whole, None), (whole, 10)]
    assert runs.in_order(jobs[:1]) == jobs[:1]


def test_rows_for_a_corpus_are_trained_and_tested_on_it(tmp_path, monkeypatch):
    folder = write_corpus(tmp_path / "people", small_corpus(whole=True))
    table = TABLES["messenger_test"]
    wide = with_corpus(table, folder)
    assert wide.rows[: len(table.rows)] == table.rows
    assert [row.id for row in wide.rows[len(table.rows) :]] == ["relread_corpus", "emma_corpus", "emma_game_id_corpus"]
    (own,), (other,) = (jobs_of(wide, wide.rows[k], "quick_rl", 1.0) for k in (0, len(table.rows)))
    assert own.settings(0).env_options == {}
    assert other.settings(0).resolve().stages["s2"].sets["test"].options == {
        "corpus": folder,
        "stage": "s2",
        "split": "test",
    }
    name = other.name
    assert name.startswith(f"{own.name}-text-")
    data = small_corpus(whole=True)
    data["test"]["mage"]["enemy"]["unknown"] += ["Beware!"]
    write_corpus(tmp_path / "people", data)
    assert other.name != name  # other files are another run
    out = ("--out", tmp_path / "out", "--no-train")
    assert command(monkeypatch, "messenger_test", "--corpus", folder, *out) == 0
    assert f"| relread, text: {folder} |" in (tmp_path / "out/messenger_test-quick.md").read_text()


@pytest.mark.parametrize("table", SILG, ids=lambda table: table.id)
def test_each_row_of_silgs_tables_makes_its_network(table):
    asked = [(row, job) for row in table.rows for preset in row.presets for job in jobs_of(table, row, preset, 1.0)]
    assert {row.id for row, _ in asked} == {row.id for row in table.rows}
    for row, job in asked:
        settings = job.settings(0)
        assert settings.agent == row.id
        settings.make_network()

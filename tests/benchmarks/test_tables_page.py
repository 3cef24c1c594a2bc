"""What tables say: numbers made by hand stand where they belong, and every cell is one that its runs measure."""

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.tables import TABLES
from benchmarks.tables.layout import PRESETS, Cell, Row, Table, Training
from benchmarks.tables.page import Filled, filled_table, markdown, rows
from benchmarks.tables.runs import jobs_of
from magrounding.envs.published import PublishedResult
from magrounding.experiment.results import RunResults
from magrounding.registry import AGENTS
from tests.benchmarks.test_tables import cells
from tests.experiment.tiny_runs import IMITATION, LEARNER, phases_of, tiny_settings


def by_hand(settings, **wins):
    """Results of a run whose seeds won `wins[set][play]` of the games after its only stage."""
    lines = {}
    for i, seed in enumerate(settings.seeds):
        place = {"stage": "s1", "phase": "reinforce"}
        ended = {"best_steps": 60 * i, "total_steps": 1000 + i, "training_seconds": 30.0 * (i + 1)}
        lines[seed] = [
            {"kind": "train", **place, "games": 3, "window_win_rate": 0.25 * (i + 1)},
            {"kind": "evaluation", **place, "when": "within", "set": "eval", "play": "sampled", "win_rate": 0.9},
            *(
                {"kind": "evaluation", **place, "when": "after", "set": name, "play": play, "win_rate": rates[i]}
                for name, of_set in wins.items()
                for play, rates in of_set.items()
            ),
            {"kind": "phase", **place, **ended},
        ]
        for line in lines[seed]:
            line["manual"] = "true"
    floor = {"s1/eval": {"random": {"win_rate": 0.125}, "oracle": {"win_rate": 0.875}}}
    return RunResults(Path("runs/hand/seed_0"), settings, {}, lines, floor, {})


def test_the_text_of_a_table_from_numbers_made_by_hand():
    settings = tiny_settings(stages=("s1",), seeds=(0, 1), phases=phases_of(60, IMITATION, LEARNER))
    run = by_hand(settings, eval={"greedy": (0.75, 0.25), "sampled": (0.5, 0.75)})
    training = Training("txt2pi", ("s1",))
    shown = Row(
        "hand",
        "By hand",
        {
            "eval": Cell(training, "s1", "eval", PublishedResult(0.41, None, "nobody")),
            "new": Cell(training, "s1", "eval_new", PublishedResult(0.61, 0.01, "nobody")),
            "games": Cell(training, "s1", None),
        },
    )
    table = Table("hand", "By hand", "ma_rtfm", ("eval", "new", "games", "none"), (shown,), 2)
    filled = Filled(table, {("quick", training): run}, {"x": "y"}, (0, 1, 2), "quick", 0.5, "sampled", "as typed")
    heads, _, ours, random, oracle = cells(filled_table(filled).markdown())
    assert heads == ["", "learnt by", "seeds", "environment steps", "training", "eval", "new", "games", "none"]
    facts = ["By hand", "reinforcement after imitation", "2", "1,000 to 1,001", "30 s to 1 min 00 s"]
    assert ours[:5] == facts
    assert ours[5:] == ["62.5 % ± 17.7 % †1 (41.0 %)", "not run (61.0 % ± 1.0 %)", "37.5 % ± 17.7 % (–)", "–"]
    assert (random[5:], oracle[5:]) == (["12.5 %", "–", "–", "–"], ["87.5 %", "–", "–", "–"])
    greedy = cells(filled_table(replace(filled, play="greedy")).markdown())[2]
    assert greedy[5] == "50.0 % ± 35.4 % †1 (41.0 %)"

    other = replace(shown, id="other", label="Other", presets={"quick": "quick_other"})
    both = cells(filled_table(replace(filled, table=replace(table, rows=(other, shown)))).markdown())
    assert both[2][5] == "not run (41.0 %)", "it learns as the other row does, but for the preset"
    assert both[3] == ours

    assert "* teacher of `tiny`: the scripted oracle" in markdown(filled, None)
    assert "during training (sampled play, mean over seeds)" in markdown(filled, "hand.png")
    alone = replace(run, settings=tiny_settings(stages=("s1",), seeds=(0, 1)))
    shown_files = replace(run, settings=replace(run.settings, demonstrations={"a.npz": "0"}))
    shown_files = replace(shown_files, config={"demonstrators": {"a.npz": "a person"}})
    shown_files = markdown(replace(filled, runs={("quick", training): shown_files}), None)
    assert "* teacher of `tiny`: demonstrations of a person (`a.npz`)" in shown_files
    assert "* teacher of `tiny`: none: reinforcement alone" in markdown(
        replace(filled, runs={("quick", training): alone}), None
    )
    found = {(row["column"], row["play"]): row for row in rows(filled)}
    assert found["eval", "greedy"]["value"] == 0.5
    assert ("new", "greedy") not in found
    assert found["games", "greedy"]["games"] == 0, "a window is of other games than its line"
    assert found["eval", "greedy"]["agent"] == settings.agent


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("id", list(TABLES))
def test_every_cell_of_the_papers_tables_is_measured(id, preset):
    """What a table shows is what the reports of its runs count, in the columns that it has."""
    table, trained = TABLES[id], 0
    assert len({row.id for row in table.rows}) == len(table.rows)
    for row in table.rows:
        assert row.cells.keys() <= set(table.columns)
        if preset not in row.presets:
            continue
        if any(cell.training.agent not in AGENTS for cell in row.cells.values()):
            assert id == "endi_qmix"
            continue
        jobs = {job.training: job.settings(0) for job in jobs_of(table, row, preset, 1.0)}
        for cell in row.cells.values():
            settings = jobs[cell.training]
            assert cell.evaluation_set in (None, *settings.resolve().of_stage(cell.stage)[-1].reported)
            assert cell.training.size is None or cell.training.stages[-1] == cell.stage
        if "guide" not in settings.network:  # a folder that is made here
            settings.make_network()
        trained += 1
    # Some worlds have no preset of reinforcement that two cores can finish, or none of the paper's for narrow networks.
    absent = (id == "silg_table2" and preset == "quick_rl") or (id.startswith("rtfm_rps") and preset != "quick")
    with_reasons = {"rtfm_table1", "rtfm_table2", "rtfm_table3", "endi_three_agents"}
    assert trained or id == "endi_qmix" or absent or (preset == "quick_reasons" and id not in with_reasons)

"""Numbers on pages are those of files of results (`tools.results`)."""

import pytest

from magrounding.experiment.config import make_config
from magrounding.experiment.rows import learns, write_rows
from tools import results

COMMAND = "python -m benchmarks.curriculum --env rtfm --agent txt2pi --preset quick --seeds 0,1"


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    results.read.cache_clear()
    rows = [
        {"stage": "s1", "phase": "imitate", "set": "eval", "play": "greedy", "metric": "win_rate", "value": 0.5},
        {"stage": "s1", "phase": "reinforce", "set": "eval", "play": "greedy", "metric": "win_rate", "value": 0.75},
        {"stage": "s1", "set": "eval", "play": "sampled", "metric": "win_rate", "value": 0.8, "std": 0.1, "seeds": 3},
        {"stage": "s1", "set": "eval", "manual": "reassigned", "play": "greedy", "metric": "win_rate", "value": 0.01},
        {"stage": "s1", "set": "eval", "metric": "length", "value": 9.5},
        {"stage": "s1", "set": "train", "play": "greedy", "metric": "win_rate", "value": 1.0, "teacher": "eval"},
    ]
    write_rows(tmp_path / "a" / "report.md", rows, command="magrounding evaluate")
    yield tmp_path
    results.read.cache_clear()


def test_every_page_shows_the_numbers_of_files():
    assert results.main(check=True) == 0


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("a s1 eval greedy", "75.0 %"),  # of the last phase
        ("a s1 eval sampled", "80.0 ± 10.0 %"),
        ("a s1 eval reassigned", "1.0 %"),
        ("a s1 eval length", "9.5"),
    ],
)
def test_words_name_one_number(files, words, text):
    assert results.fill(f"<!-- {{result}} {words} --><!-- / -->", "") == f"<!-- {{result}} {words} -->{text}<!-- / -->"


@pytest.mark.parametrize("words", ["a s1 greedy", "a s2 eval greedy", "b s1"])
def test_words_that_name_no_number_or_several_are_refused(files, words):
    with pytest.raises(results.Missing):
        results.find(words)


def test_a_percentage_that_somebody_typed_is_found():
    text = "won 3 %\n<!-- {published} EnDi -->61 %<!-- / --> `5 %` <!-- {result} a s1 -->7.5 %<!-- / -->\n12.5 ± 1.0 %"
    assert list(results.typed(text)) == [(1, "3 %"), (3, "12.5 ± 1.0 %")]


def test_a_row_is_stale_when_its_command_trains_something_else():
    trained = learns(make_config("rtfm", "txt2pi", preset="quick", seeds=(0, 1)))
    assert not results.is_stale({**trained, "command": COMMAND})
    assert results.is_stale({**trained, "command": COMMAND + " network.width=7"})
    assert results.is_stale({"command": COMMAND}), "what it trained is not known"


def test_the_preset_of_a_table_is_the_one_that_was_asked_for(files):
    row = {"row": "x", "preset": "its own", "metric": "win_rate", "value": 1.0}
    write_rows(files / "b" / "report.md", [row], preset="asked")
    assert results.find("b x")["preset"] == "asked"

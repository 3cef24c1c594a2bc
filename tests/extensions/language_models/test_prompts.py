"""Templates of prompts, and how a reply is read."""

import pytest

from magrounding.extensions.language_models.prompts import JSON, MARKS, PROMPTS, Prompt, read_move

LEGAL, KNOWN = {"left": 3, "go to desk 1": 5}, {"left": 3, "up": 1, "go to desk 1": 5}
VERSIONS = {
    "naive": ("1", "272d0af0878a"),
    "chain_of_thought": ("1", "5c20a6b1514d"),
    "few_games": ("1", "7fa452103bbd"),
}
"""A text that changes gets another version: results before and after it cannot be compared."""


@pytest.mark.parametrize(
    ("reply", "move"),
    [
        ("<move>left</move>", 3),
        ("<MOVE> Left. </MOVE>", 3),
        ("first <move>up</move>, no: <move>left</move>", 3),
        ("<move>go  to\ndesk 1</move>", 5),
        ('<move>"left"</move>', 3),
        ("<move>`left`.</move>", 3),
        ("left", "there is no move between <move> and </move>"),
        ("<move>up</move>", "'up' is not legal now"),
        ("<move>fly</move>", "'fly' is none of the moves"),
        ("<move></move>", "'' is none of the moves"),
        ("<move>\x1b[31m</move>", r"'\x1b[31m' is none of the moves"),
        (f"<move>{'x' * 999}</move>", f"'{'x' * 80}\\u2026' is none of the moves"),
    ],
)
def test_moves_between_marks(reply, move):
    assert read_move(reply, MARKS, LEGAL, KNOWN) == ((move, "") if isinstance(move, int) else (None, move))


@pytest.mark.parametrize(
    ("reply", "move"),
    [
        ('{"move": "left"}', 3),
        ('{"thought": "…", "move": " LEFT "}', 3),
        ("<move>left</move>", "it is not JSON"),
        ("[" * 100_000, "it is not JSON"),
        ('{"move": true}', 'the object has no entry "move" that is a text'),
        ('{"move": "up"}', "'up' is not legal now"),
    ],
)
def test_moves_in_json(reply, move):
    assert read_move(reply, JSON, LEGAL, KNOWN) == ((move, "") if isinstance(move, int) else (None, move))


@pytest.mark.parametrize("name", PROMPTS)
def test_templates_of_the_package(name):
    prompt = Prompt.load(name)
    assert (prompt.version, prompt.hash) == VERSIONS[name], "a text that changes gets another version"
    for form, mark in ((MARKS, "<move>NAME</move>"), (JSON, '{"move": "NAME"}')):
        for part, places in (("system", {"games": "GAMES"}), ("again", {"reason": "REASON"})):
            filled = prompt.fill(part, form, **places)
            assert mark in filled
            assert "$" not in filled
        filled = prompt.fill("fact", form, rules="RULES", question="QUESTION", answers="ANSWERS")
        assert all(word in filled for word in ("RULES", "QUESTION", "ANSWERS", mark))
    assert prompt.shows_games == (name == "few_games")

"""Scripts: moves that were written down beforehand."""

import numpy as np
import pytest

import magrounding as mg
from magrounding.errors import ConfigurationError, DataNotFound
from magrounding.single.script import Script, ScriptedTeam
from tests.many_choices import ManyChoices


def test_lines_comments_and_repetitions():
    script = Script.parse("# all of it\nleft # to the wall\n\n  up * 2\n?\n3\n")
    assert script.moves == ("left", "up", "up", "?", "3")
    assert [script.at(step) for step in (0, 2, 4, 5, 99)] == ["left", "up", "3", "?", "?"]
    again = Script.parse("left\nup\n*")
    assert [again.at(step) for step in range(5)] == ["left", "up", "left", "up", "left"]


@pytest.mark.parametrize("text", ["# nothing", "*", "left\n*\nup", "left * 0", "* 3", "left * 99999999999999999"])
def test_what_is_no_script(text):
    with pytest.raises(ConfigurationError):
        Script.parse(text)


def test_files_that_are_none(tmp_path):
    with pytest.raises(DataNotFound):
        Script.load(tmp_path / "none.txt")
    (tmp_path / "raw").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigurationError):
        Script.load(tmp_path / "raw")
    vec = mg.make_vec("rtfm", 1)
    (tmp_path / "moves").write_text("jump")
    with pytest.raises(ConfigurationError):
        ScriptedTeam(Script.load(tmp_path / "moves"), vec.spec)


def test_every_game_begins_at_the_first_line():
    vec = mg.make_vec("ma_rtfm", 3, agents=2, max_cycles=4)
    team = ScriptedTeam(Script.parse("Left\n1\n?\nstay"), vec.spec)
    obs, info = vec.reset(seed=0)
    team.initial_memory(3)
    step = np.zeros(3, int)
    for _ in range(12):
        step[info.done] = 0
        actions, _ = team.act(obs, None, info)
        for row in range(3):
            wanted = [3, 1, None, 0][step[row]]
            chosen = actions[row]
            legal = obs["action_mask"][row, [0, 1], chosen] != 0
            assert legal[info.alive[row]].all() if wanted is None else (chosen == wanted).all()
        obs, _, _, _, info = vec.step(actions)
        step += 1


def test_choices_are_named_by_their_words():
    vec = mg.vectorize(ManyChoices, 2, workers=0)
    obs, info = vec.reset(seed=0)
    words = vec.spec.words
    row = int(np.flatnonzero(obs["action_mask"][0, 0])[5])
    choices = obs["choices"] if obs["choices"].ndim == 3 else obs["choices"][:, 0]
    said = " ".join(words[i] for i in choices[0, row] if i)
    team = ScriptedTeam(Script.parse(f"{said.upper()}\nno such thing"), vec.spec)
    team.initial_memory(2)
    assert (choices[0, team.act(obs, None, info)[0][0, 0]] == choices[0, row]).all()
    missing = team.act(obs, None, None)[0][0, 0]
    assert not obs["action_mask"][0, 0, missing] or obs["action_mask"][0, 0].all()

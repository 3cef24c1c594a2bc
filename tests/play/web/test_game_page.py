"""The page of a game, in Node with a document of stubs: how it says a game ended, and the words of a moment."""

import json
import subprocess

import pytest

from tests.play.web.test_study_page import NODE, PAGE, STUBS

pytestmark = pytest.mark.skipif(NODE is None, reason="node is not installed")
SCRIPT = (
    STUBS.partition("const sections")[0]
    .replace('"/study"', '"/game/abcdefghijkl"')
    .replace("await import", 'document.getElementById("filter").value = "";\nawait import')
    + """
console.log(JSON.stringify({status: elements.status.textContent, text: elements.text.textContent}));
process.exit();
"""
)
WORDS = "GOAL\nfind it .\n\nFEEDBACK\nyou see a shelf 1 ."


def shown(folder, scored=False, **moment):
    """What a page that has joined a game says of a moment of it."""
    for name in ("board", "page", "study"):
        code = (PAGE / f"{name}.js").read_text(encoding="utf-8")
        (folder / f"{name}.mjs").write_text(code.replace("/file/", "./").replace('.js"', '.mjs"'), encoding="utf-8")
    (folder / "stubs.mjs").write_text(SCRIPT, encoding="utf-8")
    game = {"env": "any", "players": ["human"], "people": [0], "actions": None, "max_cycles": 50, "scored": scored}
    frame = {"type": "frame", "step": 0, "over": False, "won": False, "score": 7, "last": [], "text": WORDS, **moment}
    messages = [
        {"type": "joined", "code": "abcdefghijkl", "game": {**game, "colours": []}, "mine": [0], "token": "t"},
        {"type": "status", "present": [0], "chosen": [], "begun": True, "thinking": False, "clock": None},
        frame,
    ]
    done = subprocess.run(
        [NODE, folder / "stubs.mjs", json.dumps(messages)], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("won", "scored", "says"),
    [(True, True, "is won."), (False, True, "is over, score 7."), (False, False, "is lost.")],
)
def test_the_end_of_a_game_names_a_score_only_where_the_world_has_one(tmp_path, won, scored, says):
    assert shown(tmp_path, scored=scored, over=True, won=won)["status"] == f"The game {says}"


def test_a_world_without_a_map_is_shown_in_words(tmp_path):
    assert shown(tmp_path, moves={0: [[0, "go to shelf 1"], [1, "look"]]})["text"] == WORDS

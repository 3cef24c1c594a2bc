"""Pictures and text of scenes, also of things that nobody has drawn yet."""

from __future__ import annotations

import time

import numpy as np
import pytest

import magrounding as mg
from magrounding.envs.drawing import rgb_array
from magrounding.envs.drawing.picture import _BACKGROUND, HEIGHT, WIDTH, _text_block
from magrounding.envs.drawing.sprites import AGENT_COLOURS, ELEMENTS, figures, hashed, quality_colour, sprite
from magrounding.envs.messenger.arrays import ENTITIES
from magrounding.envs.render import Figure, Scene, ansi
from magrounding.envs.rtfm import ontology
from tests.full import in_the_full_suite


def scene(size: int = 8, figures: tuple[Figure, ...] | None = None, **changes) -> Scene:
    walls = np.ones((size, size), np.bool_)
    walls[1:-1, 1:-1] = False
    if figures is None:
        figures = (
            Figure(2, 2, "agent", "0"),
            Figure(3, 3, "agent", "1"),
            Figure(1, 4, "monster", "goblin", "fire"),
            Figure(1, 4, "item", "katana", "mysterious"),
            Figure(4, 1, "item", "axe", "blessed"),
        )
    facts = {
        "walls": walls,
        "figures": figures,
        "alive": (True, True, False),
        "inventories": ("", "arcane spear", ""),
        "goal": "defeat the star alliance",
        "manual": ("arcane , blessed beat fire .", "goblin are star alliance ."),
        "step": 7,
        "max_cycles": 100,
        "outcome": "",
    }
    return Scene(**{**facts, **changes})


def test_ansi_says_everything():
    text = ansi(scene())
    assert text.splitlines()[0] == "step 7 of 100"
    assert ansi(scene(outcome="won")).splitlines()[0] == "step 7 of 100 · won"
    for line in (
        "0   agent 0 holds nothing",
        "1   agent 1 holds arcane spear",
        "2   agent 2 is dead",
        "A   fire goblin (monster)",
        "a   mysterious katana (item)",
        "b   blessed axe (item)",
        "goal: defeat the star alliance",
        "  goblin are star alliance .",
    ):
        assert line in text.splitlines()


def test_ansi_map_is_aligned():
    board = ansi(scene()).splitlines()[2:10]
    assert board == [
        "## ## ## ## ## ## ## ##",
        "## .  .  .  Aa .  .  ##",
        "## .  0  .  .  .  .  ##",
        "## .  .  1  .  .  .  ##",
        "## b  .  .  .  .  .  ##",
        "## .  .  .  .  .  .  ##",
        "## .  .  .  .  .  .  ##",
        "## ## ## ## ## ## ## ##",
    ]
    crowd = tuple(Figure(2, 2, "agent", str(i)) for i in range(4))
    wide = ansi(scene(figures=crowd)).splitlines()[2:10]
    assert len({len(line) for line in wide}) == 1
    assert "0123" in wide[2]


@pytest.mark.parametrize("size", [4, 40])
def test_pictures_have_one_size(size):
    figures = (Figure(1, 1, "agent", "0"), Figure(2, 2, "monster", "goblin", "fire"))
    picture = rgb_array(scene(size, figures))
    assert (picture.shape, picture.dtype) == ((HEIGHT, WIDTH, 3), np.uint8)
    assert picture.flags.writeable


def test_every_fact_can_be_seen():
    picture = rgb_array(scene())
    one_thing_else = [
        scene(step=50),
        scene(outcome="won"),
        scene(outcome="lost"),
        scene(goal="defeat the rebel enclave"),
        scene(manual=("arcane beat fire .", "goblin are star alliance .")),
        scene(inventories=("", "blessed spear", "")),
        scene(inventories=("", "", "")),
        scene(alive=(True, True, True)),
        *(scene(figures=scene().figures[:k] + scene().figures[k + 1 :]) for k in range(5)),
        scene(figures=(*scene().figures[:2], Figure(1, 4, "monster", "goblin", "cold"), *scene().figures[3:])),
        scene(figures=(*scene().figures[:2], Figure(1, 4, "monster", "ghost", "fire"), *scene().figures[3:])),
    ]
    pictures = [picture, *map(rgb_array, one_thing_else)]
    assert len({p.tobytes() for p in pictures}) == len(pictures)
    np.testing.assert_array_equal(rgb_array(scene()), picture)


@pytest.mark.parametrize("element", ELEMENTS)
def test_monsters_have_the_colour_of_their_element(element):
    red, green, blue, alpha = np.moveaxis(np.asarray(sprite("monster", "goblin", element, 64)).astype(int), -1, 0)
    expected = [int(ELEMENTS[element][i : i + 2], 16) for i in (1, 3, 5)]
    close = (abs(red - expected[0]) + abs(green - expected[1]) + abs(blue - expected[2]) < 12) & (alpha == 255)
    assert close.mean() > 0.15


def test_every_known_name_has_a_figure_of_its_own():
    monsters = {*ontology.TRAINING.monsters, *ontology.UNSEEN.monsters, ontology.DRAGON}
    nouns = {*ontology.TRAINING.nouns, *ontology.UNSEEN.nouns}
    assert monsters <= {*figures()["creatures"]}
    assert nouns <= {*figures()["weapons"]}
    assert {*figures()["entities"], "sword"} == {*ENTITIES, "message"}
    kinds = ("creatures", "monster", "fire"), ("weapons", "item", "blessed"), ("entities", "enemy", "")
    for group, kind, quality in kinds:
        names = [name for name, figure in figures()[group].items() if "shapes" in figure]
        assert len({sprite(kind, name, quality, 48).tobytes() for name in names}) == len(names)
    agents = {sprite("agent", str(i), "", 48).tobytes() for i in range(len(AGENT_COLOURS))}
    assert len(agents) == len(AGENT_COLOURS)


def test_a_scene_without_a_goal_shows_none():
    assert ansi(scene(goal="")).splitlines() == [
        line for line in ansi(scene()).splitlines() if not line.startswith("goal:")
    ]


def test_unknown_words_get_fixed_looks():
    # CRC-32, unlike hash(), is the same in every process and on every platform.
    assert [hashed(name, "abcdefgh") for name in ("airplane", "thief", "ball")] == ["f", "g", "d"]
    assert quality_colour("fire") == ELEMENTS["fire"]
    assert quality_colour("glowing") not in ELEMENTS.values()
    for figure in (
        Figure(1, 1, "monster", "mage"),
        Figure(1, 1, "item", "q"),
        Figure(1, 1, "door", "gate"),
        Figure(1, 1, "agent", "queen"),
    ):
        image = sprite(figure.kind, figure.name, figure.quality, 48)
        assert image.size == (48, 48)
        assert np.asarray(image)[..., 3].any()
        assert figure.name in ansi(scene(figures=(figure,), alive=(True,), inventories=("",)))


@pytest.mark.parametrize("together", [1, 4, 20])
@pytest.mark.parametrize("size", [6, 30])
def test_crowds_stay_in_their_cell(together, size):
    crowd = tuple(Figure(2, 2, "item", "morningstar", "grandmasters") for _ in range(together))
    full, empty = rgb_array(scene(size, crowd)).astype(int), rgb_array(scene(size, ())).astype(int)
    board = 820
    rows, columns = np.nonzero((full != empty).any(axis=-1)[:, :board])
    shown = size - 1.5  # of the ring of walls, a quarter of a cell
    cell = min(130, int(800 / shown))
    left, top = 20 + (800 - cell * shown) / 2 - cell * 0.75, (840 - cell * shown) / 2 - cell * 0.75
    assert left + 2 * cell - 6 <= columns.min()
    assert columns.max() <= left + 3 * cell + 6
    assert top + 2 * cell - 6 <= rows.min()
    assert rows.max() <= top + 3 * cell + 6


def test_long_manuals_are_set_smaller_until_they_fit():
    sentence = "weapons that somebody has called blessed or arcane are good against fire creatures ."
    for count in (2, 7, 10):
        block = np.asarray(_text_block((sentence,) * count, frozenset(), "#000000", (400, 370), 18))
        ground = np.array([int(_BACKGROUND[i : i + 2], 16) for i in (1, 3, 5)])
        inked = np.nonzero((block != ground).any(axis=(1, 2)))[0]
        assert inked.max() < 369, "the last line is cut off"


@pytest.mark.alone
@in_the_full_suite("speeds, which others' work disturbs")
def test_a_frame_is_fast():
    env = mg.make("ma_rtfm", stage="s5", agents=3, render_mode="rgb_array")
    env.reset(seed=0)
    env.render()
    times = []
    for _ in range(5):
        start = time.process_time()
        env.render()
        times.append(time.process_time() - start)
    assert min(times) <= 0.050, f"{min(times) * 1000:.0f} ms a frame"


def test_rings_in_the_colours_of_those_that_claim_an_entity():
    marks = np.full((2, 8, 8), -1, np.int8)
    marks[:, 1, 4], marks[:, 4, 1] = 1, [0, 1]
    marked = scene().marked(marks)
    assert [figure.claimed_by for figure in marked.figures] == [(), (), (0, 1), (0, 1), (1,)]
    text = ansi(marked)
    assert "a   mysterious katana (item), claimed by agent 0, agent 1" in text
    assert "b   blessed axe (item), claimed by agent 1" in text
    before, after = rgb_array(scene()), rgb_array(marked)
    assert before.shape == after.shape
    colours = [tuple(int(c[i : i + 2], 16) for i in (1, 3, 5)) for c in AGENT_COLOURS[:3]]
    drawn = [int((after == colour).all(2).sum() - (before == colour).all(2).sum()) for colour in colours]
    assert drawn[0] > 20
    assert drawn[1] > drawn[0]  # it has a whole ring besides
    assert drawn[2] == 0


@pytest.mark.parametrize("size", [8, 12])
@pytest.mark.parametrize("together", [1, 3])
def test_labels_cover_no_figure(size, together, monkeypatch):
    figures = (
        Figure(2, 2, "monster", "wolf", "lightning"),
        Figure(2, 2, "item", "morningstar", "grandmasters"),
        Figure(2, 2, "agent", "1"),
    )[:together]
    empty, labelled = rgb_array(scene(size, ())), rgb_array(scene(size, figures))
    monkeypatch.setattr("magrounding.envs.drawing.picture._write", lambda *_: None)
    bare = rgb_array(scene(size, figures))
    drawn = (bare != empty).any(-1)[:, :820]
    assert drawn.sum() > 100
    assert (labelled != bare).any()
    assert (labelled != bare).any(-1)[:, :820][drawn].mean() < 0.005

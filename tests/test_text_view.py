"""What an agent sees, in words: the words are read back to the very arrays, and no line of them says anything else."""

import math
import re

import numpy as np
import pytest

import magrounding as mg
from magrounding.envs.messenger.arrays import ENTITIES, FIRST_SYMBOL, KIND, PRESENT, ROLE, X, Y
from magrounding.envs.messenger.kernels import show_games
from magrounding.errors import CallOrderError, ConfigurationError, MissingExtra
from magrounding.single.babyai.words import COLOURS, STATES, TYPES
from magrounding.single.nethack.words import SHADES
from magrounding.spec import COLUMNS, EPISODE, Directions, EnvSpec, Field, FixedActions, Grid, Mask, Text, TextChoices
from magrounding.text_view import HAPPENED, Happened, TextView
from magrounding.vector import observation_of
from tests.full import in_full

VARIANTS = [
    *((id, {}) for id in mg.ENVS),
    ("rtfm", {"task": "simple", "size": 10}),
    ("ma_rtfm", {"stage": "s5", "agents": 3, "death": "individual"}),
    ("ma_rtfm", {"stage": "s5", "sight": 2, "omission": 0.5}),
    ("ma_rtfm", {"stage": "s2", "occupants": 1}),
    ("ma_rtfm", {"stage": "s6"}),
    ("ma_rtfm", {"stage": "s5", "agents": 3, "size": 9, "reading": "kind"}),
    ("ma_rtfm", {"stage": "s2g", "agents": 3, "reading": "librarian", "omission": 0.5}),
    ("messenger", {"stage": "s2", "layout": "paragraph"}),
    ("messenger", {"stage": "s3", "omission": 0.5}),
    ("ma_messenger", {"stage": "s4", "agents": 3}),
    ("babyai", {"level": "BossLevel"}),
    ("babyai", {"level": "GoTo", "displacement": True}),
    ("nethack", {"crop": 9, "characters": True, "colours": True}),
    ("nethack", {"crop": 9, "level": True}),
    ("touchdown", {"patch": 4, "turned": True, "manual_stop": True}),
]
MESSENGER = {name: FIRST_SYMBOL + kind for kind, name in enumerate(ENTITIES)} | {
    "me": 15,
    "me with a message": 16,
    "ally": 17,
    "ally with a message": 18,
}
SIDES = (("up", "north", "in front"), ("down", "south", "behind"), ("left", "west", "to the left"))
WAY = re.compile(r"(\d+) (up|north|in front|down|south|behind|left|west|to the left|right|east|to the right)")


def only(pattern, line):
    """What the groups of a pattern are in a line that has nothing else."""
    found = re.fullmatch(pattern, line)
    assert found, f"{line!r} is not {pattern}"
    return found.groups()


class Reader:
    """Reads a text back to arrays; every line that it does not know is an error."""

    def __init__(self, id, spec):
        self.id, self.spec = id, spec
        self.ids = {word: i for i, word in enumerate(spec.words)}

    def read(self, text):
        self.parts = dict(part.partition("\n")[::2] for part in text.split("\n\n"))
        self.parts = {title: lines.split("\n") for title, lines in self.parts.items()}
        found = {}
        if "told_by" in self.spec:
            found["told_by"] = self.told_by()
        for field in self.spec.fields:
            if isinstance(field, Text) and field.name != "choices":
                found[field.name] = self.text(field, self.parts.pop(field.name.upper()))
        you, team, self.moves = self.parts.pop("YOU", []), self.parts.pop("TEAM", []), self.parts.pop("MOVES")
        self.happened = self.parts.pop(HAPPENED, None)
        for field in self.spec.fields:
            if isinstance(field, Grid):
                found[field.name] = self.grid(
                    field, self.parts.pop("MAP" if field.name == "grid" else field.name.upper()), you
                )
            elif field.name == "teammates":
                found[field.name] = np.array([self.teammate(k, line) for k, line in enumerate(team)])
            elif isinstance(field, Mask):
                found |= self.actions()
            elif field.name not in {COLUMNS, *found}:
                found[field.name] = self.plain(field, you)
        assert not you
        assert not self.parts
        return found

    def told_by(self):
        """Who told each line, which is taken from its end."""
        found = np.full(self.spec["told_by"].shape, -1)
        for k, line in enumerate(self.parts["MANUAL"]):
            statement, _, teller = only(r"(.+?)( \(told by agent (\d)\))?", line)
            self.parts["MANUAL"][k] = statement
            found[k] = -1 if statement == "(nothing)" else 1 + int(teller or -1)
        self.statements = {line.removesuffix(" ."): k for k, line in enumerate(self.parts["MANUAL"])}
        return found

    def line(self, line):
        ids = []
        for word in [] if line == "(nothing)" else line.split():
            ids += (
                [self.ids[word]]
                if word in self.ids
                else [self.ids[part] for part in (word[0], *map("##{}".format, word[1:]))]
            )
        return ids

    def text(self, field, lines):
        array = np.zeros((1, *field.shape)[-2:], int)
        for row, line in zip(array, lines, strict=False):
            ids = self.line(line)
            row[: len(ids)] = ids
        assert len(lines) <= len(array)
        return array.reshape(field.shape)

    def occupant(self, name, width):
        """Ids of what something is called."""
        if name == "nothing":
            return [0] * width
        if "messenger" in self.id:
            return [MESSENGER[name]]
        if self.id == "nethack":
            name, marked, mark = name.partition(" mark:")
            glyph, _, character, _, colour = only(r".+ \(glyph (\d+)\)( shown as (.+?))?( in (.+))?", name)
            words = [f"glyph:{glyph}"]
            words += [f"character:{ord(eval(character))}"] if character else []
            words += [f"colour:{SHADES.index(colour)}"] if colour else []
            words += [f"mark:{mark}"] if marked else []
            return [self.ids[word] for word in words] + [0] * (width - len(words))
        words = name.split()
        if self.id == "babyai":
            words = [next((word for word in words if word in kind), None) for kind in (TYPES, COLOURS, STATES)]
            assert len(name.split()) == len([word for word in words if word])
            return [self.ids[word] if word else 0 for word in words]
        return [self.ids[word] for word in words] + [0] * (width - len(words))

    def grid(self, field, lines, you):
        if self.id == "alfworld":
            return self.text(Text(field.name, field.shape[::2], 0, 0), lines)[:, None]
        height, width, depth = field.shape
        assert lines[0] == f"{height} rows and {width} columns, counted from 0 at the top left"
        signs, things = {}, {}
        own = next(
            (tuple(map(int, only(r"at row (\d+), column (\d+)", line))) for line in you if line.startswith("at ")), None
        )
        if self.id == "babyai":
            own = 6, 3
            things[own] = [self.occupant(only("holds (.+)", you[0])[0].replace("nothing", "empty"), 3)]
            del you[0]
        elif field.egocentric:
            own = (height // 2, width // 2) if own else None
        for line in lines[1 + height :]:
            thing = re.fullmatch(r"(.) (.+): row (\d+), column (\d+)( \((.+)\))?", line)
            if not thing:
                sign, name = only(r"(.) (.+)", line)
                assert sign not in signs
                signs[sign] = self.occupant(name, field.words_per_occupant)
                continue
            sign, name, row, column, _, way = thing.groups()
            place = int(row), int(column)
            here = things.setdefault(place, [])
            here.append(self.occupant(name, field.words_per_occupant))
            drawn = lines[1 + place[0]][3:][:: 2 if width <= 20 else 1][place[1]]
            assert len(here) > 1 or drawn == sign
            assert self.steps(way) == (None if own is None else (place[0] - own[0], place[1] - own[1]))
        array = np.zeros((height, width, depth), int)
        for row in range(height):
            shown = lines[1 + row].ljust(3 + 2 * width)
            assert int(shown[:3]) == row
            shown = shown[3::2] if width <= 20 else shown[3:]
            for column in range(width):
                found = things[row, column] if (row, column) in things else [signs[shown[column]]]
                ids = [i for occupant in found for i in occupant]
                array[row, column, : len(ids)] = ids
        return array

    def steps(self, way):
        """Rows down and columns to the right, of "2 up, 1 left"."""
        if way in (None, "here"):
            return None if way is None else (0, 0)
        down = right = 0
        for count, name in WAY.findall(way):
            axis = next((k for k, names in enumerate(SIDES) if name in names), 3)
            down += int(count) * ((axis == 1) - (axis == 0))
            right += int(count) * ((axis == 3) - (axis == 2))
        return down, right

    def held(self, name, width):
        if "messenger" in self.id:
            return {"nothing": [0], "a message": [16]}[name]
        return self.occupant(name, width)

    def plain(self, field, you):
        line = you.pop(0)
        if field.name == "displacement":
            return np.array((0, 0) if line == "is where it began" else self.steps(only("has come (.+)", line)[0]))
        if field.name == "position":
            if line == self.off_map:
                return np.array([-1, -1])
            return np.array(only(r"(?:at|looks at) row (\d+), column (\d+)", line)).astype(int)
        if field.name == "inventory":
            return np.array(self.held(only("holds (.+)", line)[0], *field.shape))
        if self.id == "babyai":
            return np.array([("right", "down", "left", "up").index(only("faces (.+) in the maze", line)[0])])
        return np.array(only(rf"{field.name}: (.+)", line)[0].split()).astype(field.dtype)

    @property
    def off_map(self):
        return "not on the map" if self.spec.tells else "no longer in the game"

    def teammate(self, k, line):
        place, row, column, _, held = only(
            rf"teammate {k}: (row (\d+), column (\d+)(?: \((.+)\))?|{self.off_map}), holds (.+)", line
        )
        at = [-1, -1] if place == self.off_map else [int(row), int(column)]
        return [*at, *self.held(held, self.spec["teammates"].shape[1] - 2)]

    def actions(self):
        actions = self.spec.actions
        mask = np.zeros(actions.count, int)
        if isinstance(actions, FixedActions):
            mask[[actions.names.index(name) for name in self.moves.pop(0).split(", ")]] = 1
            mask[[self.statements[only("tell (.+)", line)[0]] - actions.tells for line in self.moves]] = 1
            return {"action_mask": mask}
        if isinstance(actions, TextChoices):
            choices = np.zeros((actions.max_choices, actions.max_tokens), int)
            for line in self.moves:
                number, words = only(r"(\d+) (.*)", line)
                ids = self.line(words.removesuffix(", closed"))
                choices[int(number), : len(ids)] = ids
                mask[int(number)] = not words.endswith(", closed")
            return {"action_mask": mask, "choices": choices}
        assert isinstance(actions, Directions)
        columns = np.full(actions.count, -1)
        for line in self.moves:
            name, column, _, closed = only(
                r"(.+): column (-?\d+), (\d+° to the (?:left|right)|straight on)(, closed)?", line
            )
            columns[actions.names.index(name)] = int(column)
            mask[actions.names.index(name)] = not closed
        return {"action_mask": mask, COLUMNS: columns}


def same(spec, found, seen):
    assert found.keys() == {field.name for field in spec.fields}
    for field in spec.fields:
        np.testing.assert_array_equal(found[field.name], seen[field.name], err_msg=field.name)


def open_env(id, options):
    try:
        return mg.make(id, **{"max_cycles": 30, **options})
    except MissingExtra as missing:
        pytest.skip(str(missing))


@pytest.mark.parametrize(("id", "options"), VARIANTS, ids=lambda each: str(each))
def test_the_words_of_every_world_are_read_back_to_its_arrays(id, options):
    env, rng = open_env(id, options), np.random.default_rng(0)
    reader = Reader(id, env.spec)
    for seed in range(in_full(3, 1)):
        seen, _ = env.reset(seed=seed)
        acted = dict.fromkeys(env.agents)
        while True:
            for agent, observation in seen.items():
                text = env.describe(agent)
                same(env.spec, reader.read(text), observation)
                if acted[agent] is None:
                    assert reader.happened == ["nothing"]
            if not env.agents:
                break
            actions = {
                agent: int(
                    rng.integers(env.spec.num_actions) if rng.random() < 0.2 else rng.choice(np.flatnonzero(mask))
                )
                for agent, mask in ((agent, seen[agent]["action_mask"]) for agent in env.agents)
            }
            seen, rewards, terminations, truncations, infos = env.step(actions)
            acted |= actions
            for agent in seen:
                reader.read(env.describe(agent))
                illegal = ", which was not legal and did nothing" if infos[agent].get("illegal") else ""
                row = actions[agent] - env.spec.num_actions
                told = env.spec.vocabulary.decode(seen[agent]["manual"][row]) if row >= -env.spec.tells else ""
                told = told.removesuffix(" .")
                name = f"tell {told}" if told else env.spec.actions.names[actions[agent]]
                assert reader.happened[0] == f"your action: {name}{illegal}"
                assert math.isclose(
                    float(only("your reward: (.+)", reader.happened[1])[0]), rewards[agent], rel_tol=1e-5
                )
                over = terminations[agent] or truncations[agent]
                assert len(reader.happened) == 2 + over
                if over and not env.agents and env.spec.outcome == "won":
                    assert reader.happened[2] == f"the game is {'won' if infos[agent]['won'] else 'lost'}"
    env.close()


def have_cells_of_their_own(world):
    """Whether no two entities share a cell, so that the order in which they are kept is not seen."""
    at = [tuple(each) for each in (world._games.entities[0, :, [Y, X]] // 2).T.tolist()]
    return len(set(at)) == len(at)


@pytest.mark.parametrize("stage", ["s1", "s2", "s3"])
def test_entities_of_messenger_change_roles_and_the_words_stay(stage):
    vec, rng, changed = mg.make_vec("messenger", 1, stage=stage), np.random.default_rng(0), 0
    for seed in range(20):
        vec.reset(seed=seed)
        world, n = vec.world, vec.num_agents
        if not have_cells_of_their_own(world):
            continue
        before = {name: array.copy() for name, array in world.observation.items()}
        texts = [vec.describe(0, agent) for agent in range(n)]
        entities = world._games.entities[0]
        roles = entities[n:, [ROLE, KIND]].tolist()
        entities[n:, [Y, X, PRESENT, KIND]] = rng.permutation(entities[n:, [Y, X, PRESENT, KIND]])
        changed += entities[n:, [ROLE, KIND]].tolist() != roles
        show_games(0, 1, True, world.out.done, world._slots, world._rules, world._games, world._views)
        for name, array in before.items():
            np.testing.assert_array_equal(world.observation[name], array)
        assert [vec.describe(0, agent) for agent in range(n)] == texts
        words = "\n".join(text.partition("\n\nMAP\n")[2] for text in texts)
        assert not re.search(r"enem|decoy|\bgoal|monster|item|team\b", words)
    assert changed > 5


def test_what_stays_comes_first():
    """A server of language models reuses what two texts have in common at their beginning: all that lasts."""
    env = mg.make("ma_rtfm", stage="s5", agents=2)
    env.reset(seed=0)
    lasting = env.describe("agent_0").partition("\n\nMAP\n")[0]
    assert lasting.startswith("MANUAL\n")
    assert "\n\nGOAL\n" in lasting
    env.step(dict.fromkeys(env.agents, 0))
    assert all(env.describe(agent).startswith(f"{lasting}\n\nMAP\n") for agent in env.possible_agents)
    with pytest.raises(ConfigurationError):
        env.describe("agent_7")
    env.close()
    with pytest.raises(CallOrderError):
        env.describe("agent_0")


def test_a_world_of_ones_own_has_words_for_free():
    spec = EnvSpec(
        fields=(
            Text("manual", (2, 3), 0, 5, shared=True, lifetime=EPISODE),
            Grid("grid", (2, 2, 2), 0, 5, scenery_ids=(0, 1), avatar_ids=(2,)),
            Field("position", (2,), -1, 1),
            Field("speed", (2,), -1, 1, "float32"),
            Mask("action_mask", (2,)),
        ),
        num_agents=1,
        actions=FixedActions(("wait", "go")),
        words=("", "grass", "me", "lamp", "is", "bright"),
        max_cycles=9,
    )
    seen = {
        "manual": np.array([[0, 0, 0], [3, 4, 5]]),
        "grid": np.array([[[1, 0], [3, 0]], [[2, 3], [0, 0]]]),
        "position": np.array([1, 0]),
        "speed": np.array([0.5, 0], np.float32),
        "action_mask": np.array([1, 0]),
    }
    assert TextView(spec).describe(seen, Happened(1, illegal=True, reward=-0.5, over=True)).split("\n") == [
        *("MANUAL", "(nothing)", "lamp is bright", ""),
        *("MAP", "2 rows and 2 columns, counted from 0 at the top left", " 0 , a", " 1 @ .", ". nothing", ", grass"),
        *(
            "a lamp: row 0, column 1 (1 up, 1 right)",
            "@ me: row 1, column 0 (here)",
            "a lamp: row 1, column 0 (here)",
            "",
        ),
        *("YOU", "at row 1, column 0", "speed: 0.5 0.0", "", "MOVES", "wait", "", HAPPENED),
        *("your action: go, which was not legal and did nothing", "your reward: -0.5", "the game is over for you"),
    ]
    batch = {name: array[None] if spec[name].shared else array[None, None] for name, array in seen.items()}
    same(spec, observation_of(spec, batch, 0, 0), seen)

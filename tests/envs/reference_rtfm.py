"""The rules of RTFM a second time, as slow and plain as they can be said, to compare the kernels with.

This reference knows only what a player knows: words and the document. Who is a target and what beats whom is read from
the text, so a comparison fails where the text and the world disagree. Chance (turn order, moves of monsters) is told to
it; `ReferenceGame.step` checks that what it is told is something the rules allow.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from importlib.resources import files

TEMPLATES = json.loads((files("magrounding.envs.rtfm") / "data" / "templates.json").read_text(encoding="utf-8"))
ELEMENTS = ("cold", "fire", "lightning", "poison")
TEAMS = ("star alliance", "order of the forest", "rebel enclave")
MOVES = {0: (0, 0), 1: (-1, 0), 2: (1, 0), 3: (0, -1), 4: (0, 1)}  # stay, up, down, left, right

_BLANKS = {
    "{modifiers}": r"(?P<members>[a-z]+(?: , [a-z]+)*)",
    "{monsters}": r"(?P<members>[a-z]+(?: , [a-z]+)*)",
    "{element}": f"(?P<name>{'|'.join(ELEMENTS)})",
    "{team}": f"(?P<name>{'|'.join(TEAMS)})",
}


def _pattern(template: str) -> re.Pattern[str]:
    pattern = re.escape(template).replace(r"\ ", " ").replace(r"\{", "{").replace(r"\}", "}")
    for blank, group in _BLANKS.items():
        pattern = pattern.replace(blank, group)
    return re.compile(pattern)


PATTERNS = {
    name: {kind: [_pattern(t) for t in sentences] for kind, sentences in kinds.items()}
    for name, kinds in TEMPLATES.items()
    if name != "origin"
}


@dataclass
class Document:
    """What a text says.

    Attributes:
        beats: modifier (or letter) → the element (or letter) it beats.
        team_of: monster → team.
        target_team: the team of the goal.
        statements: kind and template number of each row of the manual.
        goal_template: number of the goal's template.
        lists: the lists of members as they were written.
    """

    beats: dict[str, str] = field(default_factory=dict)
    team_of: dict[str, str] = field(default_factory=dict)
    target_team: str = ""
    statements: list[tuple[str, int]] = field(default_factory=list)
    goal_template: int = -1
    lists: list[list[str]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)


def _read_sentence(sentence: str, patterns: list[re.Pattern[str]]) -> tuple[int, re.Match[str]] | None:
    matches = [(i, m) for i, p in enumerate(patterns) if (m := p.fullmatch(sentence))]
    assert len(matches) <= 1, f"{sentence!r} can be read in several ways"
    return matches[0] if matches else None


def read_document(manual: list[str], goal: str, template_set: str) -> Document:
    """Parse a document of RTFM; fails where a sentence has no reading, two readings, or contradicts another."""
    patterns, document = PATTERNS[template_set], Document()
    for sentence in manual:
        found = {kind: _read_sentence(sentence, patterns[kind]) for kind in ("modifier", "team")}
        kinds = [kind for kind, match in found.items() if match]
        assert len(kinds) == 1, f"{sentence!r} is about {kinds or 'nothing'}"
        number, match = found[kinds[0]]
        members = match["members"].split(" , ")
        meaning = document.beats if kinds[0] == "modifier" else document.team_of
        for member in members:
            assert member not in meaning, f"{member} is named twice"
            meaning[member] = match["name"]
        document.statements.append((kinds[0], number))
        document.lists.append(members)
        document.names.append(match["name"])
    number, match = _read_sentence(goal, patterns["goal"])
    document.target_team, document.goal_template = match["name"], number
    return document


def read_letters(manual: list[str]) -> Document:
    """Parse a document of rock-paper-scissors."""
    document = Document()
    for sentence in manual:
        winner, verb, loser, stop = sentence.split()
        assert (verb, stop) == ("beats", ".")
        assert winner not in document.beats
        document.beats[winner] = loser
        document.statements.append(("letter", 0))
    return document


@dataclass
class Being:
    """An agent, a monster or an item: two words, and a cell or None (dead, held, destroyed)."""

    words: tuple[str, str]
    cell: tuple[int, int] | None
    held: Being | None = None


@dataclass
class Outcome:
    """What a step did, for each agent."""

    rewards: list[float]
    terminated: list[bool]
    truncated: list[bool]
    illegal: list[bool]
    done: bool
    won: bool


class ReferenceGame:
    """One game, from its first cells and its document on."""

    def __init__(
        self,
        agents: list[tuple[int, int] | None],
        monsters: list[Being],
        items: list[Being],
        document: Document,
        *,
        size: int,
        max_cycles: int,
        death: str = "team",
        drop_mode: str = "destroyed",
        moving: bool = False,
        monsters_first: bool = False,
        letters: bool = False,
    ) -> None:
        self.agents = [Being(("me", ""), cell) for cell in agents]
        self.monsters, self.items, self.document = monsters, items, document
        self.size, self.max_cycles = size, max_cycles
        self.death, self.drop_mode, self.moving, self.monsters_first = death, drop_mode, moving, monsters_first
        self.letters = letters
        self.steps = 0

    def is_target(self, monster: Being) -> bool:
        if self.letters:
            return True
        return self.document.team_of[monster.words[1]] == self.document.target_team

    def is_wall(self, cell: tuple[int, int]) -> bool:
        return not (1 <= cell[0] <= self.size - 2 and 1 <= cell[1] <= self.size - 2)

    def mask(self, agent: Being) -> list[int]:
        if agent.cell is None:
            return [1, 0, 0, 0, 0]
        return [int(move == 0 or not self.is_wall(_step(agent.cell, move))) for move in MOVES]

    def step(self, actions: list[int], turns: list[int], moves: dict[int, int]) -> Outcome:
        """Play a step.

        Args:
            actions: of every agent.
            turns: numbers of beings (agents first, then monsters) in the order they move.
            moves: monster number (counted from n) → its move.
        """
        n = len(self.agents)
        self._check_chance(turns, moves)
        self.steps += 1
        living = [agent.cell is not None for agent in self.agents]
        illegal = [
            lives and not self.mask(a)[action] for a, lives, action in zip(self.agents, living, actions, strict=True)
        ]
        self.kills, self.deaths, self.engaged = [0] * n, [False] * n, [False] * n
        self.agent_order = [k for k in turns if k < n]
        for k in turns:
            if k < n:
                self._move_agent(k, 0 if illegal[k] else actions[k])
            elif self.moving and self.monsters[k - n].cell is not None:
                self._move_monster(k - n, moves[k])
        return self._judge(living, illegal)

    def _check_chance(self, turns: list[int], moves: dict[int, int]) -> None:
        n, m = len(self.agents), len(self.monsters)
        agents, monsters = list(range(n)), list(range(n, n + m))
        if self.moving and self.monsters_first:
            assert sorted(turns[:m]) == monsters, turns
            assert sorted(turns[m:]) == agents, turns
        else:
            assert sorted(turns[:n]) == agents, turns
            assert sorted(turns[n:]) == (monsters if self.moving else []), turns
        for k, move in moves.items():
            cell = self.monsters[k - n].cell
            assert cell is None or not self.is_wall(_step(cell, move)), f"a monster at {cell} walks into a wall"

    def _move_agent(self, number: int, move: int) -> None:
        agent = self.agents[number]
        if agent.cell is None or move == 0:
            return
        agent.cell = _step(agent.cell, move)
        for item in self.items:
            if item.cell == agent.cell:
                if agent.held is not None and self.drop_mode == "left":
                    agent.held.cell = agent.cell
                item.cell = None
                agent.held = item
                break
        for monster in self.monsters:
            if monster.cell == agent.cell and agent.cell is not None:
                self._fight(number, monster)

    def _move_monster(self, number: int, move: int) -> None:
        monster = self.monsters[number]
        monster.cell = _step(monster.cell, move)
        for k in self.agent_order:
            if monster.cell is not None and self.agents[k].cell == monster.cell:
                self._fight(k, monster)

    def _fight(self, number: int, monster: Being) -> None:
        agent = self.agents[number]
        if not self.is_target(monster):
            self.engaged[number] = True
        if agent.held is not None and self.document.beats[agent.held.words[0]] == monster.words[0]:
            monster.cell = None
            self.kills[number] += self.is_target(monster)
        else:
            agent.cell = None
            self.deaths[number] = True

    def _judge(self, lived: list[bool], illegal: list[bool]) -> Outcome:
        n = len(self.agents)
        alive = [agent.cell is not None for agent in self.agents]
        targets_dead = all(monster.cell is None for monster in self.monsters if self.is_target(monster))
        someone_died = any(self.deaths)
        survivors_ok = not someone_died if self.death == "team" else any(alive)
        won = targets_dead and not any(self.engaged) and survivors_ok
        lost = any(self.engaged) or not any(alive) or (someone_died and self.death == "team")
        late = not won and not lost and self.steps >= self.max_cycles
        rewards = []
        for k in range(n):
            if not lived[k]:
                rewards.append(0.0)
            elif self.deaths[k] or self.engaged[k] or late:
                rewards.append(-1.0)
            elif self.kills[k]:
                rewards.append(float(self.kills[k]))
            else:
                rewards.append(-0.02)
        terminated = [lived[k] and (won or lost or not alive[k]) for k in range(n)]
        truncated = [late and alive[k] for k in range(n)]
        return Outcome(rewards, terminated, truncated, illegal, won or lost or late, won)

    def _crowds(self, viewer: int | None) -> dict[tuple[int, int], list[str]]:
        """Cell → words of its occupants, two each: me, other agents, monsters, items."""
        me = [] if viewer is None else [(("me", ""), self.agents[viewer].cell)]
        others = [(("ally", ""), agent.cell) for k, agent in enumerate(self.agents) if k != viewer]
        crowds: dict[tuple[int, int], list[str]] = {}
        for words, cell in [*me, *others, *((being.words, being.cell) for being in (*self.monsters, *self.items))]:
            if cell is not None:
                crowds.setdefault(cell, []).extend(words)
        return crowds

    def grid(self, viewer: int | None, occupants: int = 2, sight: float | None = None) -> list[list[list[str]]]:
        """Words [H][W][2 × occupants] that an agent sees, "" where there are none; viewer None for `state()`."""
        crowds, width = self._crowds(viewer), 2 * occupants
        me = self.agents[viewer].cell if viewer is not None else None

        def look(cell: tuple[int, int]) -> list[str]:
            if sight is not None and viewer is not None and (me is None or _far(cell, me) > sight**2):
                words = ["fog"]
            elif self.is_wall(cell):
                words = ["wall"]
            else:
                words = crowds.get(cell, ["empty"])[:width]
            return words + [""] * (width - len(words))

        return [[look((r, c)) for c in range(self.size)] for r in range(self.size)]

    def inventory(self, number: int) -> list[str]:
        agent = self.agents[number]
        return list(agent.held.words) if agent.held is not None and agent.cell is not None else ["", ""]

    def position(self, number: int) -> list[int]:
        return list(self.agents[number].cell or (-1, -1))


def _step(cell: tuple[int, int], move: int) -> tuple[int, int]:
    return cell[0] + MOVES[move][0], cell[1] + MOVES[move][1]


def _far(a: tuple[int, int], b: tuple[int, int]) -> int:
    return (a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2


def encode(vocabulary, words) -> list:
    """Nested lists of words as nested lists of ids; "" is padding."""
    if isinstance(words, str):
        return vocabulary[words] if words else 0
    return [encode(vocabulary, w) for w in words]

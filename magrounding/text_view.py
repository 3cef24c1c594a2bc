"""TextView: one agent's observation in words, and nothing else.

A text is made of an `EnvSpec` and the arrays of one agent alone, so equal observations have equal texts, and no role,
team or place is in a text that is not in the arrays. What stays the same in an episode (manual, goal) comes first and
what changes last, so that a server of language models can reuse what it has computed for the beginning.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from string import ascii_letters
from typing import Any, NamedTuple

import numpy as np

from magrounding.registry import ENVS, load
from magrounding.spec import (
    CHOICES,
    COLUMNS,
    EPISODE,
    LEVEL,
    MASK,
    Directions,
    EnvSpec,
    Field,
    Grid,
    Mask,
    TextChoices,
)
from magrounding.vector import Observation, check_count, observation_of
from magrounding.vocabulary import PAD, plain_text

POSITION, INVENTORY, TEAMMATES = "position", "inventory", "teammates"
"""Plain fields of ids and places: [2] row and column, [I] ids of words, [n - 1, 2 + I] both of each teammate."""
MANUAL, TOLD_BY = "manual", "told_by"
"""The text [S, L] whose rows are statements; and [S] where each is from: −1 not known, 0 one's own, 1 + the agent that
told it."""

MAP, YOU, TEAM, MOVES, HAPPENED = "MAP", "YOU", "TEAM", "MOVES", "HAPPENED"
"""Titles of sections beside those of texts, which are the names of their fields."""
NOTHING = "nothing"
LEFT_OUT = f"({NOTHING})"
"""Line of an empty row of a text, before others."""
OWN = "@"
"""Sign of the reader's own cell."""

Sections = dict[str, list[str]]
"""Title → lines, in the order of the text."""
Occupant = tuple[int, ...]
"""Word ids [words_per_occupant] of what is in a cell."""

_SIGNS = {"empty": ".", "wall": "#", "fog": "~", "unseen": "?"}
_SPARE = ".,:;'`^-|=*%$!+_/\\<>()[]{}"
"""Signs of scenery without one of its own."""


class Happened(NamedTuple):
    """Results of an agent's last action.

    Attributes:
        action: its number; None for an agent that has not acted yet.
        illegal: it was masked, and did nothing.
        reward: of that step, the agent's own.
        over: the agent acts no more.
        won: whether the game was won; None as long as it goes on, and in games that only have a score.
    """

    action: int | None = None
    illegal: bool = False
    reward: float = 0.0
    over: bool = False
    won: bool | None = None


class TextView:
    """Texts of the observations of a spec. A world may word something better in a subclass, which `EnvEntry` names.

    Attributes:
        own_is_inventory: the agent's own cell shows what it carries, as in BabyAI.
    """

    own_is_inventory = False

    def __init__(self, spec: EnvSpec) -> None:
        self.spec = spec

    def describe(self, seen: Observation, happened: Happened | None = None) -> str:
        """Return an agent's observation (the fields of the spec, without a batch) as text.

        Sections are separated by empty lines, each with its title above. Without `happened` that section is left out.
        """
        return joined(self.sections(seen, happened))

    def describe_all(self, seen: Mapping[str, Observation], happened: Mapping[str, Happened]) -> str:
        """Return the observations of several agents as text; what all of them read appears once."""
        if len(seen) == 1:
            return "".join(self.describe(each, happened.get(agent)) for agent, each in seen.items())
        parts: list[str] = []
        shared = [name.upper() for name in self.spec.shared_texts]
        for agent, each in seen.items():
            sections = self.sections(each, happened.get(agent))
            common = {title: sections.pop(title) for title in shared if title in sections}
            parts += [joined(common)] if common and not parts else []
            parts.append(f"AGENT {agent}\n\n{joined(sections)}")
        return "\n\n".join(parts)

    def sections(self, seen: Observation, happened: Happened | None = None) -> Sections:
        """Return the parts of `describe`."""
        texts = [text for text in self.spec.texts if text.name != CHOICES]
        found = {text.name.upper(): self.text(seen[text.name]) for text in texts if text.lifetime == EPISODE}
        own = self.own_cell(seen)
        you: list[str] = []
        for field in self.spec.own_fields:
            elsewhere = {TOLD_BY: self.spec.tells, COLUMNS: self._directs}
            if isinstance(field, Mask) or elsewhere.get(field.name):
                continue
            array = np.asarray(seen[field.name])
            if isinstance(field, Grid):
                title = MAP if field.name == "grid" else field.name.upper()
                found[title] = self.map(field, array, self._place(seen) if field.name == LEVEL else own)
                if self.own_is_inventory and own is not None:
                    you.append(f"holds {self.held(array[own].ravel().tolist())}")
            elif field.name == TEAMMATES and self._has_places:
                found[TEAM] = [self._teammate(k, row, own) for k, row in enumerate(array.tolist())]
            else:
                you += self.field(field, array)
        found |= {YOU: you} if you else {}
        found |= {TEAM: found.pop(TEAM)} if TEAM in found else {}
        found |= {text.name.upper(): self.text(seen[text.name]) for text in texts if text.lifetime != EPISODE}
        if self.spec.tells:
            told = np.asarray(seen[TOLD_BY]).tolist()
            lines = zip(found[MANUAL.upper()], told, strict=False)
            found[MANUAL.upper()] = [f"{line} (told by agent {k - 1})" if k > 0 else line for line, k in lines]
        found[MOVES] = self._moves(seen)
        return found if happened is None else {**found, HAPPENED: self._happened(happened, seen)}

    # What a world may word in its own way.

    def word(self, i: int) -> str:
        """Return the word of an id."""
        return self.spec.words[i] if 0 <= i < len(self.spec.words) else f"#{i}"

    def name(self, occupant: Occupant) -> str:
        """Return what an occupant of a cell is called; different ones have different names."""
        return " ".join(self.word(i) for i in occupant if i != PAD) or NOTHING

    def held(self, ids: Sequence[int]) -> str:
        """Return what is held, given the ids of an inventory."""
        return " ".join(self.word(i) for i in ids if i != PAD) or NOTHING

    def sign(self, occupant: Occupant) -> str:
        """Return the sign of an occupant on the map; "" for one that any free sign will do for."""
        return _SIGNS.get(self.word(occupant[0]), "") if occupant[0] != PAD else "."

    def is_scenery(self, grid: Grid, occupant: Occupant) -> bool:
        """Tell whether a sign on the map is enough: all else is listed with its place as well."""
        return not any(occupant) or occupant[0] in grid.scenery_ids

    def own_cell(self, seen: Observation) -> tuple[int, int] | None:
        """Return the row and column of the reader on the map; None where it is not there, or is not known."""
        if not self._has_places or any(isinstance(field, Grid) and field.egocentric for field in self.spec.fields):
            return None
        return self._place(seen)

    def way(self, down: int, right: int) -> str:
        """Return where something is from the reader, by rows and columns."""
        return way(down, right, ("up", "down", "left", "right"))

    def field(self, field: Field, array: np.ndarray) -> list[str]:
        """Return the lines of a field that is neither a map, a text nor a mask."""
        if field.name == POSITION and self._has_places:
            row, column = array.tolist()
            return [f"at row {row}, column {column}" if row >= 0 else self._off_map]
        if field.name == INVENTORY and self.spec.words and array.dtype.kind in "iu":
            return [f"holds {self.held(array.ravel().tolist())}"]
        rows = array.reshape(-1, array.shape[-1] if array.ndim else 1).tolist()
        if array.dtype.kind in "iu" and (field.low, field.high) == (PAD, len(self.spec.words) - 1):  # ids of words
            rows = [[self.word(i) if i != PAD else NOTHING for i in row] for row in rows]
        return [f"{field.name}: {' '.join(map(str, row))}" for row in rows]

    def direction(self, column: int, seen: Observation) -> str:
        """Return where a direction of a panorama leads."""
        return f"column {column}"

    def text(self, array: np.ndarray) -> list[str]:
        """Return the lines of a text, up to the last that is not empty; one of nothing where it is empty."""
        rows = array.reshape(-1, array.shape[-1])
        written = np.flatnonzero(rows.any(1))
        last = int(written[-1]) + 1 if written.size else 1
        return [self._line(row) for row in rows[:last].tolist()]

    def map(self, grid: Grid, array: np.ndarray, own: tuple[int, int] | None) -> list[str]:
        """Return a sign for each cell, what the signs mean, and a line for everything that is not scenery."""
        cells = {
            (row, column): _occupants(cell, grid.words_per_occupant)
            for row, line in enumerate(array.tolist())
            for column, cell in enumerate(line)
        }
        if self.own_is_inventory and own is not None:
            del cells[own]
        alone = Counter(each[0] for each in cells.values() if len(each) == 1 and self.is_scenery(grid, each[0]))
        scenery = self._choose_signs(alone)
        letters, signs = iter(ascii_letters), dict[Occupant, str]()
        things, shown = [], dict[tuple[int, int], str]()
        for cell, occupants in cells.items():
            if len(occupants) == 1 and occupants[0] in scenery and cell != own:
                shown[cell] = scenery[occupants[0]]
                continue
            for k, occupant in enumerate(occupants):
                sign = OWN if k == 0 and cell == own else signs.get(occupant) or self.sign(occupant)
                sign = sign or next(letters, "?")
                if sign != OWN:
                    signs[occupant] = sign
                shown.setdefault(cell, sign)
                things.append(f"{sign} {self.name(occupant)}: {self._at(*cell, own)}")
        if own is not None:
            shown[own] = OWN
        between = " " if grid.width <= 20 else ""
        lines = [f"{grid.height} rows and {grid.width} columns, counted from 0 at the top left"]
        for row in range(grid.height):
            signs_of_row = between.join(shown[row, column] for column in range(grid.width))
            lines += [f"{row:>2} {signs_of_row}".rstrip()]
        return [*lines, *(f"{sign} {self.name(occupant)}" for occupant, sign in scenery.items()), *things]

    def _place(self, seen: Observation) -> tuple[int, int] | None:
        row, column = np.asarray(seen[POSITION]).tolist()
        return (row, column) if row >= 0 else None

    @property
    def _off_map(self) -> str:
        """Place of the dead, and where agents tell, of one without a body."""
        return "not on the map" if self.spec.tells else "no longer in the game"

    @property
    def _has_places(self) -> bool:
        return POSITION in self.spec and self.spec[POSITION].shape == (2,)

    @property
    def _directs(self) -> bool:
        return isinstance(self.spec.actions, Directions) and COLUMNS in self.spec

    def _line(self, row: Sequence[int]) -> str:
        if not self.spec.words:
            return " ".join(map(str, row))
        words = [self.word(i) for i in row if i != PAD]
        return plain_text(("", *words), range(1, len(words) + 1)) or LEFT_OUT

    def _choose_signs(self, counts: Mapping[Occupant, int]) -> dict[Occupant, str]:
        """Return signs for scenery, no two alike, the most frequent first; what no sign is left for is not in it."""
        signs: dict[Occupant, str] = {}
        for occupant in sorted(counts, key=lambda each: (-counts[each], each)):
            choices = (self.sign(occupant), *_SPARE)
            free = next((each for each in choices if each and each not in signs.values()), None)
            if free is not None:
                signs[occupant] = free
        return signs

    def _at(self, row: int, column: int, own: tuple[int, int] | None) -> str:
        place = f"row {row}, column {column}"
        return place if own is None else f"{place} ({self.way(row - own[0], column - own[1])})"

    def _teammate(self, k: int, row: Sequence[int], own: tuple[int, int] | None) -> str:
        at = self._at(row[0], row[1], own) if row[0] >= 0 else self._off_map
        return f"teammate {k}: {at}, holds {self.held(row[2:])}"

    def _moves(self, seen: Observation) -> list[str]:
        """Return the legal actions: the names on one line, or a line for each of the choices or directions."""
        actions = self.spec.actions
        legal = np.asarray(seen.get(MASK, np.ones(actions.count))).astype(bool)  # a game of one's own may have none
        if isinstance(actions, TextChoices):
            rows = np.asarray(seen[CHOICES])
            offered = np.flatnonzero(legal | rows.any(1)).tolist()
            return [f"{j} {self._line(rows[j].tolist())}" + ("" if legal[j] else ", closed") for j in offered]
        if self._directs:
            columns = np.asarray(seen[COLUMNS]).tolist()
            return [
                f"{actions.names[j]}: {self.direction(column, seen)}" + ("" if legal[j] else ", closed")
                for j, column in enumerate(columns)
                if legal[j] or column >= 0
            ]
        able, first = np.flatnonzero(legal).tolist(), actions.count - self.spec.tells
        told = [action_name(self.spec, seen, j) for j in able if j >= first]
        return [", ".join(actions.names[j] for j in able if j < first), *told]

    def _happened(self, happened: Happened, seen: Observation) -> list[str]:
        lines = []
        if happened.action is not None:
            told = self.spec.tells > 0
            name = action_name(self.spec, seen, happened.action) if told else self.spec.actions.names[happened.action]
            lines.append(f"your action: {name}" + (", which was not legal and did nothing" if happened.illegal else ""))
            lines.append(f"your reward: {happened.reward:g}")
        if happened.over:
            end = "over for you" if happened.won is None else "won" if happened.won else "lost"
            lines.append(f"the game is {end}")
        return lines or [NOTHING]


def action_name(spec: EnvSpec, seen: Observation, action: int) -> str:
    """Return the name of an action of an agent that sees `seen`; a tell has its statement, a choice its words."""
    if isinstance(spec.actions, TextChoices):
        return plain_text(spec.words, seen[CHOICES][action].tolist()) or NOTHING
    row = action - spec.num_actions + spec.tells
    said = plain_text(spec.words, seen[MANUAL][row].tolist()) if row >= 0 else ""
    return f"tell {said.removesuffix(' .')}" if said else spec.actions.names[action]


def joined(sections: Mapping[str, Sequence[str]]) -> str:
    """Return sections as one text."""
    return "\n\n".join("\n".join((title, *lines)) for title, lines in sections.items())


def find_text_view(id: str, spec: EnvSpec) -> TextView:
    """Return the texts of an environment, by its id: those that its entry names, or else those of the spec alone."""
    named = ENVS[id].text_view if id in ENVS else ""
    return (load(named) if named else TextView)(spec)


def describe_row(vec: Any, observation: Mapping[str, Any], step: Any, actions: np.ndarray, row: int, agent: int) -> str:
    """Return the text of an agent of a batch that begins anew by itself, see `capabilities.HasTextView`.

    Args:
        vec: the batch, a VectorEnv.
        observation: of all rows, as on show.
        step: likewise the results of the last step, attributes as of `Info` and `VectorEnv.step`.
        actions: [B, n], those of the step; negative where they are not known.
    """
    row, agent = check_count("row", row, 0, vec.num_envs - 1), check_count("agent", agent, 0, vec.num_agents - 1)
    action = int(actions[row, agent]) if step.length[row] and not step.done[row] else -1
    acted = action >= 0 and bool(step.alive[row, agent] | step.terminated[row, agent] | step.truncated[row, agent])
    happened = Happened(
        action if acted else None,
        bool(step.illegal[row, agent]),
        float(step.rewards[row, agent]),
        not step.alive[row, agent],
    )
    return find_text_view(vec.id, vec.spec).describe(observation_of(vec.spec, observation, row, agent), happened)


def _occupants(cell: Sequence[int], width: int) -> tuple[Occupant, ...]:
    """Return what is in a cell, up to the last that is not padding, but at least one."""
    found = [tuple(cell[k : k + width]) for k in range(0, len(cell), width)]
    while len(found) > 1 and not any(found[-1]):
        found.pop()
    return tuple(found)


def way(down: int, right: int, names: Sequence[str]) -> str:
    """Return "2 up, 3 right", given what the four directions are called."""
    steps = (down, names[down > 0]), (right, names[2 + (right > 0)])
    return ", ".join(f"{abs(count)} {name}" for count, name in steps if count) or "here"

"""Trajectories: gold paths with all that was valid along them, read from a file without Java."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

from magrounding.errors import ConfigurationError
from magrounding.single.scienceworld.gold import WON
from magrounding.storage import LINES, read_text


@dataclass(frozen=True)
class Trajectory:
    """A gold path as it was played.

    Attributes:
        task, split, variation: whose it is.
        text: what is to be done.
        commands, meant, score: see `Gold`.
        valid: action → the steps in which it was valid, as first and behind of each span: (0, 3, 7, 9) are the steps 0,
            1, 2, 7 and 8. Empty where it was not asked for.
    """

    task: str
    split: str
    variation: int
    text: str
    commands: tuple[str, ...]
    meant: tuple[bool, ...]
    score: int
    valid: dict[str, tuple[int, ...]]

    @property
    def gold(self) -> frozenset[str]:
        """Actions that the gold path consists of."""
        return frozenset(command for command, meant in zip(self.commands, self.meant, strict=True) if meant)


def read_trajectories(path: Path) -> list[Trajectory]:
    """Read the trajectories of a file; a last line that a kill has cut off is left out.

    A ConfigurationError where there is no such file, or it holds something else.
    """
    try:
        lines = read_text(path, LINES).split("\n")[:-1]
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"{path} cannot be read as gold trajectories ({error}): "
            "write it with `python -m tools.scienceworld.collect_gold` of a checkout"
        ) from None
    return [_parsed(line, f"{path}, line {number}") for number, line in enumerate(lines, 1)]


def learnable(path: Path) -> tuple[list[Trajectory], list[Trajectory]]:
    """Return the variations whose path reaches 100: those for training a Guide, and those for validation.

    A ConfigurationError as of `read_trajectories`, or where there are none of one of them.
    """
    whole = [each for each in read_trajectories(path) if each.score == WON]
    train = [each for each in whole if each.split == "train"]
    valid = [each for each in whole if each.split == "valid" and each.valid]
    if not train or not valid:
        raise ConfigurationError(
            f"{path} has {len(train)} training and {len(valid)} validation variations; both are needed: collect more"
        )
    return train, valid


def _parsed(line: str, where: str) -> Trajectory:
    try:
        return msgspec.json.decode(line, type=Trajectory)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ConfigurationError(f"{where} is no gold trajectory ({type(error).__name__}: {error})") from None

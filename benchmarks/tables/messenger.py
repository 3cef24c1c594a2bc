"""The table of MESSENGER (Hanjie et al. 2021) for one agent, and rows of any table for manuals in other words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from benchmarks.tables.layout import PAPER, QUICK, Cell, Row, Table, Training
from magrounding.envs.messenger.published import MESSENGER as PUBLISHED
from magrounding.envs.published import PublishedResults
from magrounding.registry import env_entry

_STAGES = ("s1", "s2", "s3")
_TESTED = {f"{stage.upper()} test": (stage, "test") for stage in _STAGES}
_EMMA: PublishedResults = {("s1", "test"): PUBLISHED["s1", "test"]}
_CORPUS = "corpus"


def _row(agent: str, label: str, presets: Mapping[str, str], known: PublishedResults) -> Row:
    cells = {head: Cell(Training(agent, _STAGES), *at, known.get(at)) for head, at in _TESTED.items()}
    return Row(agent, label, cells, presets)


MESSENGER: tuple[Table, ...] = (
    Table(
        id="messenger_test",
        title="MESSENGER, one agent: win rates on games of `test` after each stage",
        env="messenger",
        agents=1,
        columns=tuple(_TESTED),
        rows=(
            _row("relread", "relread", QUICK, {}),
            _row("emma", "EMMA", PAPER, _EMMA),
            _row("emma_game_id", "EMMA without text: Game-ID", PAPER, {}),
        ),
        note="The paper's manuals were written by people, ours are templates: rows for a corpus of people's sentences "
        "are there with `--corpus`, a folder with its three files.",
    ),
)


def takes_corpus(table: Table) -> bool:
    """Return whether the table's worlds read sentences of a folder."""
    return _CORPUS in env_entry(table.env).options


def with_corpus(table: Table, folder: str) -> Table:
    """The table with each of its rows a second time, trained and tested on the sentences of a folder."""
    return replace(table, rows=(*table.rows, *(_told_by(row, folder) for row in table.rows)))


def _told_by(row: Row, folder: str) -> Row:
    cells = {
        head: replace(cell, training=replace(cell.training, games=((_CORPUS, folder),)))
        for head, cell in row.cells.items()
    }
    return replace(row, id=f"{row.id}_{_CORPUS}", label=f"{row.label}, text: {folder}", cells=cells)

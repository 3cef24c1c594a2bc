"""The table of MESSENGER (Hanjie et al. 2021) for one agent, and rows of any table for manuals in other words."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.tables.layout import PAPER, QUICK, Row, Table
from magrounding.envs.messenger.entry import MESSENGER as PUBLISHED
from magrounding.envs.published import PublishedResults
from magrounding.registry import env_entry

_STAGES = ("s1", "s2", "s3")
_TESTED = {f"{stage.upper()} test": (stage, "test") for stage in _STAGES}
_EMMA: PublishedResults = {("s1", "test"): PUBLISHED["s1", "test"]}
_CORPUS = "corpus"


MESSENGER: tuple[Table, ...] = (
    Table(
        id="messenger_test",
        title="MESSENGER, one agent: win rates on games of `test` after each stage",
        env="messenger",
        columns=tuple(_TESTED),
        rows=(
            Row.of("relread", "relread", _TESTED, _STAGES, QUICK),
            Row.of("emma", "EMMA", _TESTED, _STAGES, PAPER, _EMMA),
            Row.of("emma_game_id", "EMMA without text: Game-ID", _TESTED, _STAGES, PAPER),
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

    def told(row: Row) -> Row:
        row = row.with_trainings(lambda training: replace(training, games=((_CORPUS, folder),)))
        return replace(row, id=f"{row.id}_{_CORPUS}", label=f"{row.label}, text: {folder}")

    return replace(table, rows=(*table.rows, *map(told, table.rows)))

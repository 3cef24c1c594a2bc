"""The papers' tables, trained and filled here: `python -m benchmarks.tables endi_table2 --preset quick`."""

from __future__ import annotations

from benchmarks.tables.babyai import BABYAI
from benchmarks.tables.endi import ENDI
from benchmarks.tables.layout import Table
from benchmarks.tables.lge import LGE
from benchmarks.tables.messenger import MESSENGER
from benchmarks.tables.rtfm import RTFM
from benchmarks.tables.silg import SILG

TABLES: dict[str, Table] = {table.id: table for table in (*BABYAI, *ENDI, *MESSENGER, *RTFM, *LGE, *SILG)}

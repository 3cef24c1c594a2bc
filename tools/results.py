"""Fill pages with numbers of files: `python -m tools.results`; `--check` writes nothing and fails where one differs.

In README and `docs/`, whatever is a result stands between two comments, and this writes what is between them:

    <!-- {result} ma_rtfm-2-quick s5 eval -->90.9 ± 0.7 %<!-- / -->

The first word is a file below `benchmarks/results`: a folder with one report, or the path of a report or a JSON file.
Each further word is the value of an entry that names rows (`magrounding.experiment.rows`), and one row is left; where
nothing else is said, it is of the true manual, greedy play, the trained team and its last phase. `show=minutes` names
another entry than the value. Of a JSON file without rows the words are keys. A table has a line for each of its own:

    <!-- {results} published, ours, sampled, teacher, steps, seeds
    S5, new rules | 61.0 ± 1.0 % | ma_rtfm-2-quick s5 eval
    -->

Any other head is a word that its cells add. A `*` in a label makes a line for each row of a paper's table, or each
stage; `published` is then of the file. `<!-- {stale} --><!-- / -->` names all files that have a †.
`<!-- {room} envs --><!-- / -->` is the limit of a room of `budget.toml`.
A number of others stands in `<!-- {published} EnDi, table 2 -->61 %<!-- / -->`. Any other percentage is an error, and
so is a number of a file that is not there. † marks what its command would not train today.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.tables import TABLES
from benchmarks.tables.runs import jobs_of
from magrounding.cli.command import CommandLine
from magrounding.cli.run_arguments import Arguments
from magrounding.cli.train import requested
from magrounding.errors import MagroundingError
from magrounding.experiment.rows import ENDING, learns
from magrounding.experiment.tables import percent, table

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
STALE = "†"
_END = "<!-- / -->"
_ONE = re.compile(r"(<!-- \{result\} (.*?) -->).*?<!-- / -->")
_MANY = re.compile(r"(<!-- \{results\} (.*?)\n(.*?)\n-->\n).*?<!-- / -->", re.DOTALL)
_STALE = re.compile(r"(<!-- \{stale\} -->).*?<!-- / -->")
_ROOM = re.compile(r"(<!-- \{room\} (\w+) -->).*?<!-- / -->")
_PUBLISHED = re.compile(r"<!-- \{published\} .*? -->.*?<!-- / -->", re.DOTALL)
_CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.DOTALL | re.MULTILINE)
_PERCENT = re.compile(r"\d[\d.,]*(?: ± [\d.]+)?\s?%(?! interval)")
_TRAINS = re.compile(r"^.*?(benchmarks\.curriculum|magrounding train) ")
_USUAL = {"manual": "true", "player": "team", "play": "greedy"}
_NAMING = ("row", "column", "stage", "phase", "set", "play", "manual", "player", "metric")
_ENTRIES = ("published", "learnt by", "teacher", "words", "sentences", "play", "games", "seeds", "steps", "minutes")


class Missing(Exception):
    """A number that no file has."""


def pages() -> list[Path]:
    """README and the pages of the documentation."""
    built = {"_build", "reports"}
    found = (path for path in (ROOT / "docs").rglob("*.md") if built.isdisjoint(path.parts))
    return [ROOT / "README.md", *sorted(found)]


def place(name: str) -> Path:
    """The file below `benchmarks/results` that a page calls so."""
    path = RESULTS / name
    found = [*path.glob(f"*{ENDING}")] if path.is_dir() else [path.with_name(path.name + ENDING), path]
    files = [*filter(Path.is_file, found)]
    if len(files) != 1:
        raise Missing(f"{name!r} is not the name of one file of results")
    return files[0]


def report(name: str) -> Path:
    """The report beside a file."""
    path = place(name)
    page = path.with_name(path.name.removesuffix(ENDING).removesuffix(".json") + ".md")
    return page if page.exists() else path


@cache
def read(name: str) -> dict[str, Any]:
    """The content of a file."""
    return json.loads(place(name).read_text(encoding="utf-8"))


def find(words: str) -> dict[str, Any]:
    """The row that words name, with what holds for all of its file; of other JSON, its value alone."""
    name, *rest = shlex.split(words)
    content, rest = read(name), [word for word in rest if not word.startswith("show=")]
    if "rows" not in content:
        value: Any = content
        for key in rest:
            value = value[int(key) if isinstance(value, list) else key]
        return {"value": value}
    rows = [row for row in content["rows"] if all(word in map(row.get, _NAMING) for word in rest)]
    for entry, usual in _USUAL.items():
        rows = [row for row in rows if row.get(entry, usual) == usual] or rows
    if "metric" not in {key for row in rows for key in row if row[key] in rest}:
        rows = [row for row in rows if row["metric"] in ("win_rate", "score", "won")]
    last = rows[-1] if rows else {}
    if len({(row.get("stage"), row.get("set"), row.get("row"), row.get("play")) for row in rows}) != 1:
        raise Missing(f"{words!r} names {len(rows)} rows, not one")
    return {**last, **content["about"]}  # a row's preset may have another name than the one that was asked for


def shown(row: Mapping[str, Any], entry: str = "value") -> str:
    """An entry of a row as pages print it."""
    value = row[entry]
    if entry == "steps":
        return f"{value / 1e6:.1f} M" if value >= 1e6 else f"{value / 1e3:.0f} k"
    if entry not in ("value", "published"):
        return f"{value:,}" if isinstance(value, int) else str(value)
    share = row.get("metric") in ("win_rate", "won", "fact_accuracy") or ("metric" not in row and abs(value) <= 1)
    if not share:
        return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"
    several = entry == "published" or row.get("seeds", 1) > 1
    std = row.get("published std" if entry == "published" else "std") if several else None
    return percent(value) if std is None else f"{percent(value)[:-2]} ± {percent(std)}"


@cache
def _digest(command: str) -> str | None:
    """The digest of what a command of `train` trains today; None where it is no longer understood."""
    try:
        line = CommandLine("train", tuple(shlex.split(_TRAINS.sub("", command))))
        return learns(requested(line.parse(Arguments)))["digest"]
    except (MagroundingError, SystemExit):
        return None


@cache
def _digests(table: str, preset: str, budget: float) -> dict[str, set[str]]:
    """Row of a table → digests of what it trains today."""
    rows = (row for row in TABLES[table].rows if preset in row.presets)
    return {
        row.id: {learns(job.settings(0))["digest"] for job in jobs_of(TABLES[table], row, preset, budget)}
        for row in rows
    }


def is_stale(row: Mapping[str, Any]) -> bool:
    """Whether a row's command would train something else today, or it is not known what it trained."""
    command, digest = row.get("command", ""), row.get("digest")
    if row.get("table") in TABLES:
        return digest not in _digests(row["table"], row["preset"], row["budget"]).get(row["row"], ())
    if row.get("player", "team") != "team" or not _TRAINS.search(command):
        return False
    return digest is None or _digest(command) != digest


def one(words: str) -> str:
    """What stands between the comments of a number."""
    entry = next((word[5:] for word in shlex.split(words) if word.startswith("show=")), "value")
    row = find(words)
    return shown(row, entry) + (STALE if is_stale(row) else "")


def lines_of(label: str, words: str) -> dict[str, str]:
    """Label → words of the lines that a line stands for."""
    rows = read(shlex.split(words)[0])["rows"] if re.search(r"(^|\s)\*$", label) else ()
    names = {row.get("label", row.get("stage")): row.get("row", row.get("stage")) for row in rows}
    return {f"{label[:-1]}{name}": f"{words} '{names[name]}'" for name in names} or {label: words}


def cell(head: str, published: str, words: str) -> str:
    """What stands in a line below a head."""
    if not words or (head == "published" and published):
        return {"ours": "not run", "published": published}.get(head, "")
    if head in _ENTRIES:
        row = find(words)
        return shown(row, head) if head in row else ""
    return one(words if head == "ours" else f"{words} '{head}'").replace(" ", "\N{NO-BREAK SPACE}")


def many(heads: str, lines: str, up: str) -> str:
    """The table of a comment, on a page from which `up` leads to the root."""
    columns = [head.strip() for head in heads.split(",")]
    body = []
    for line in lines.splitlines():
        name, published, about = (part.strip() for part in line.split("|"))
        for label, words in lines_of(name, about).items():
            link = f"[{label}]({up}{report(shlex.split(words)[0]).relative_to(ROOT)})" if words else label
            body.append([link, *(cell(head, published, words) for head in columns)])
    return table(["", *columns], body)


def stale() -> str:
    """The files of which a number is stale."""
    names = [str(path.relative_to(RESULTS)).removesuffix(ENDING) for path in sorted(RESULTS.rglob(f"*{ENDING}"))]
    return ", ".join(
        f"`{name}`" for name in names if any(is_stale({**row, **read(name)["about"]}) for row in read(name)["rows"])
    )


@cache
def rooms() -> dict[str, dict[str, Any]]:
    """The rooms of the house, by name."""
    return tomllib.loads((ROOT / "budget.toml").read_text(encoding="utf-8"))


def fill(text: str, up: str) -> str:
    """A page with every number of a file written anew."""
    text = _MANY.sub(lambda m: f"{m[1]}{many(m[2], m[3], up)}\n{_END}", text)
    text = _STALE.sub(lambda m: f"{m[1]}{stale()}{_END}", text)
    text = _ROOM.sub(lambda m: f"{m[1]}{rooms()[m[2]]['tokens']:,}{_END}", text)
    return _ONE.sub(lambda m: f"{m[1]}{one(m[2])}{_END}", text)


def typed(text: str) -> Iterator[tuple[int, str]]:
    """Line and text of percentages of a page that are of no file and not marked as published."""

    def blank(match: re.Match[str]) -> str:
        return re.sub(r"[^\n]", " ", match[0])

    for pattern in (_MANY, _ONE, _PUBLISHED, _CODE):
        text = pattern.sub(blank, text)
    for number, line in enumerate(text.splitlines(), 1):
        for match in _PERCENT.finditer(line):
            yield number, match[0]


def main(check: bool) -> int:
    """Fill all pages, or say where they are not as they would be."""
    wrong = 0
    for path in pages():
        text, name = path.read_text(encoding="utf-8"), path.relative_to(ROOT)
        try:
            filled = fill(text, "../" * (len(name.parts) - 1))
        except (Missing, KeyError, ValueError) as error:
            print(f"{name}: {error}", file=sys.stderr)
            wrong += 1
            continue
        if filled != text and check:
            print(f"{name}: its numbers are not those of the files: python -m tools.results", file=sys.stderr)
        elif filled != text:
            path.write_text(filled, encoding="utf-8")
            print(f"{name}: filled anew")
        found = list(typed(filled))
        for number, percentage in found:
            print(f"{name}:{number}: {percentage} is of no file, and not marked as published", file=sys.stderr)
        wrong += len(found) + (check and filled != text)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))

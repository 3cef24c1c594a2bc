"""Links that leave `docs/`, and mathematics as MathML, which browsers draw without a script of another host."""

from __future__ import annotations

import re
import shutil
from functools import cached_property
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math import latex2mathml
from sphinx.application import Sphinx

REPORTS = "reports"
"""Folder below `docs/` into which a build copies `benchmarks/results`, whose reports are pages of the site."""
_OUTSIDE = re.compile(r"\[([^\]]*)\]\(((?:\.\./)+)([^)#\s]*)(#[^)\s]*)?\)")
_RESULTS = "benchmarks/results/"
_FIELDS = re.compile(r"^    (\w+(?:, \w+)*): (.*)$")
_LETTER = re.compile(r"(: [A-Z])\.$")
_PAGES = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md", "README.md": "index.md"}
_WHOLE = {"changelog": "CHANGELOG.md", "contributing": "CONTRIBUTING.md"}
"""Pages that are files beside `docs/`."""
_RELATIVE = re.compile(r"\]\((?!https?:|#)")


def copy_reports(app: Sphinx) -> None:
    """Copy reports and pictures to where Sphinx finds them."""
    docs = Path(app.srcdir)
    shutil.rmtree(docs / REPORTS, ignore_errors=True)
    keep = {".md", ".png"}

    def other(folder: str, names: list[str]) -> set[str]:
        return {name for name in names if (Path(folder) / name).is_file() and Path(name).suffix not in keep}

    shutil.copytree(docs.parent / "benchmarks" / "results", docs / REPORTS, ignore=other)


def lead_home(app: Sphinx, name: str, source: list[str]) -> None:
    """Let links to files beside `docs/` lead to pages of the site, or, where they have none, be the file's name."""
    up = "../" * name.count("/")
    if name in _WHOLE:
        text = (Path(app.srcdir).parent / _WHOLE[name]).read_text(encoding="utf-8")
        source[0] = _RELATIVE.sub("](../", text).replace("](../docs/", "](")

    def found(match: re.Match[str]) -> str:
        label, ways, path, anchor = match[1], match[2], match[3], match[4] or ""
        if ways.count("../") <= name.count("/"):
            return match[0]
        if path.startswith(_RESULTS) and path.endswith(".md"):
            return f"[{label}]({up}{REPORTS}/{path.removeprefix(_RESULTS)})"
        if path.startswith(_RESULTS) and path.endswith(".png"):
            return f"[{label}]({up}{REPORTS}/{path.removeprefix(_RESULTS)})"
        if path in _PAGES:
            return f"[{label}]({up}{_PAGES[path]}{anchor})"
        return label if path in label or "`" in label else f"{label} (`{path}`)"

    source[0] = _OUTSIDE.sub(found, source[0])


def escape_stars(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Escape stars outside code in a docstring, such as that of "[*shape, 2]", which is no emphasis."""
    bullet = re.compile(r"^(\s*\* )?(.*)$")
    for index, line in enumerate(lines):
        match = bullet.match(line)
        assert match is not None
        parts = re.split(r"(`[^`]*`)", match[2])
        lines[index] = (match[1] or "") + "".join(
            part if part.startswith("`") else re.sub(r"(?<!\*)\*(?!\*)", r"\\*", part) for part in parts
        )


def skip_field(app: Sphinx, what: str, name: str, thing: Any, skip: bool, options: Any) -> bool | None:
    """Leave out a field as a member of its own: the docstring of its class describes it."""
    is_member = callable(thing) or isinstance(thing, property | cached_property)
    return True if what == "class" and not is_member else None


def each_field(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Give each of the fields that a docstring describes together its own entry; "B." alone begins no list."""
    found: list[str] = []
    fields: tuple[str, ...] = ()
    within, block = False, list[str]()
    for line in [*lines, ""]:
        match = _FIELDS.match(line)
        if fields and (match or not line.startswith("        ")):
            found += [each for field in fields for each in (f"    {field}: {block[0]}", *block[1:])]
            fields = ()
        if within and match:
            fields, block = tuple(match[1].split(", ")), [match[2]]
        elif fields:
            block.append(line)
        else:
            found.append(line)
        within = line == "Attributes:" or (within and (line.startswith("    ") or not line))
    lines[:] = [_LETTER.sub(r"\1\\.", line) for line in found[:-1]]


def protocol_signature(app: Sphinx, what: str, name: str, thing: Any, *more: Any) -> tuple[str, str] | None:
    """Show no arguments of a protocol: nobody makes one."""
    return ("", "") if getattr(thing, "_is_protocol", False) else None


def inline_math(self: Any, node: nodes.math) -> None:
    """Write a formula within a line."""
    self.body.append(latex2mathml.tex2mathml(node.astext(), as_block=False))
    raise nodes.SkipNode


def block_math(self: Any, node: nodes.math_block) -> None:
    """Write a formula on lines of its own."""
    self.body.append(f'<div class="math">{latex2mathml.tex2mathml(node.astext(), as_block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect all of it with Sphinx."""
    app.connect("builder-inited", copy_reports)
    app.connect("source-read", lead_home)
    app.connect("autodoc-process-docstring", escape_stars, priority=400)  # before napoleon, which writes stars itself
    app.connect("autodoc-process-docstring", each_field, priority=300)
    app.connect("autodoc-process-signature", protocol_signature)
    app.connect("autodoc-skip-member", skip_field)
    app.add_html_math_renderer("mathml", (inline_math, None), (block_math, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}

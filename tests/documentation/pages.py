"""The pages of the documentation: README, and everything in `docs/` that is written by hand, notebooks too."""

import json
from pathlib import Path

ROOT = Path(__file__).parents[2]
NOTEBOOK = ".ipynb"
_WRITTEN_BY_BUILDS = {"_build", "reports"}
_TAGS = {"parameters": "<!-- test: parameters -->\n"}


def written(suffix: str) -> list[Path]:
    """The files of a kind below `docs/` that are written by hand."""
    found = sorted((ROOT / "docs").rglob(f"*{suffix}"))
    return [page for page in found if not _WRITTEN_BY_BUILDS & {*page.parts}]


NOTEBOOKS = written(NOTEBOOK)
PAGES = [ROOT / "README.md", *written(".md"), *NOTEBOOKS]


def name(page: Path) -> str:
    """The page's path from the root."""
    return page.relative_to(ROOT).as_posix()


def cells(notebook: Path) -> list[dict]:
    """The cells of a notebook."""
    return json.loads(notebook.read_text(encoding="utf-8"))["cells"]


def text(page: Path) -> str:
    """A page as Markdown; a notebook's cells become blocks, and one of "%%sh" a command with few games."""
    if page.suffix != NOTEBOOK:
        return page.read_text(encoding="utf-8")
    return "\n\n".join(map(_markdown, cells(page)))


def _markdown(cell: dict) -> str:
    source = "".join(cell["source"])
    if cell["cell_type"] != "code":
        return source
    if source.startswith("%%sh\n"):
        command = source.removeprefix("%%sh\n").replace("\\\n", "")
        return f"<!-- test: short -->\n```bash\n{command}\n```"
    marks = "".join(_TAGS.get(tag, "") for tag in cell["metadata"].get("tags", ()))
    return f"{marks}```python\n{source}\n```"

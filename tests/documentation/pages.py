"""The pages of the documentation: README and everything in `docs/` that is written by hand."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
_WRITTEN_BY_BUILDS = {"_build", "reports"}
PAGES = [
    ROOT / "README.md",
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if not _WRITTEN_BY_BUILDS & {*page.parts}),
]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


def name(page: Path) -> str:
    """The page's path from the root."""
    return page.relative_to(ROOT).as_posix()

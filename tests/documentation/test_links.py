"""Links within the pages lead to files and headings that there are. (Links to other hosts are not asked.)"""

import re
from functools import cache

import pytest

from tests.documentation.pages import PAGES, ROOT, name, text

_CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\]\(([^)\s]+)\)")


@cache
def anchors(page):
    """The anchors of a page's headings, as forges and the site make them; the site's are of five levels."""
    content = text(page)
    headings = re.findall(
        r"^#{1,5} (.*)$", re.sub(r"^```.*?^```$", "", content, flags=re.DOTALL | re.MULTILINE), re.MULTILINE
    )
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"], ids=name)
def test_links_lead_somewhere(page):
    for target in _LINK.findall(_CODE.sub("", text(page))):
        if target.startswith(("https://", "http://")):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), target
        assert ROOT in (file, *file.parents), target
        assert not anchor or anchor in anchors(file), target


def test_reports_have_titles():
    """By which the site's list of them names them."""
    reports = sorted((ROOT / "benchmarks" / "results").rglob("*.md"))
    assert len(reports) > 50
    assert [path for path in reports if not path.read_text(encoding="utf-8").startswith("# ")] == []

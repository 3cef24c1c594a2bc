"""What a person typed is what a reader sees: names in tables, headings and figures."""

import pytest
from markdown_it import MarkdownIt
from matplotlib.figure import Figure

from magrounding.experiment.plots import plain
from magrounding.experiment.tables import code, shown, table

NAMES = (
    *("relread", "lr_1", "with a prior", "RTFM (ours)", "größe 2", "lr$1_$2", "a > b", "a|b", "*", "**a**", "_x_"),
    *("a _b_ c", "<b>x</b>", "<!-- a -->", "[a](b)", "~~a~~", "&amp;", "AT&T", "a\\b", "\\*a\\*", "a\\", "`a`", "``"),
    *("a``b`", "_", "a_", "_a", "$x$", "_a|b*"),
)


def text_of(markdown):
    """What a reader sees of a line in a table."""
    (row,) = (
        token
        for token in MarkdownIt("gfm-like", {"linkify": False}).parse(markdown)
        if token.type == "inline" and token.map == [2, 3]
    )
    assert {each.type for each in row.children} <= {"text", "text_special", "code_inline"}
    return "".join(each.content for each in row.children)


@pytest.mark.parametrize("way", [shown, code])
@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_read_as_it_was_typed(name, way):
    assert text_of(table(("run",), [(way(name),)])) == name


def test_no_name_ends_a_cell_or_a_line():
    lines = table(("run", "wins"), [(shown("a|b"), "1"), (shown("a\nb"), "2"), ("x\r\ny\u2028z", "3")]).splitlines()
    assert lines[2:] == ["| a\\|b | 1 |", "| a b | 2 |", "| x y z | 3 |"]


@pytest.mark.parametrize("way", [shown, code, str])
def test_no_name_commands_a_terminal(way):
    assert text_of(table(("run",), [(way("a\x1b]0;b\x07c\x9bd"),)])) == "a ]0;b c d"


@pytest.mark.parametrize("name", ["lr$1_$2", "$", "_hidden", r"\frac{1", "a\nb"])
def test_a_figure_shows_a_name_as_it_is(name):
    """Matplotlib takes dollars for formulas, and leaves out labels that begin with an underscore."""
    figure = Figure()
    axes = figure.subplots()
    axes.plot([0, 1], label=plain(name))
    legend = axes.legend()
    figure.draw_without_rendering()
    (text,) = legend.get_texts()
    shown_text, formula = text._preprocess_math(text.get_text())
    assert not formula
    assert shown_text.strip() == "".join(each if each.isprintable() else " " for each in name).strip()

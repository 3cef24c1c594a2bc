"""What a person typed is what a reader sees: names in tables, headings and figures."""

import pytest

from magrounding.experiment.markdown import code, shown, table
from magrounding.experiment.plots import plain


@pytest.mark.parametrize("name", ["relread", "lr_1", "with a prior", "a-b.c", "RTFM (ours)", "größe 2", "3 × txt2pi"])
def test_what_markdown_leaves_alone_stays_as_it_is(name):
    assert shown(name) == name


@pytest.mark.parametrize(
    "name", ["lr$1_$2", "a|b", "*", "a*b*c", "_x_", "<b>", "# no", "[a](b)", "~~a~~", "1. a", "&amp;", "a\\b", "- a"]
)
def test_what_markdown_would_take_for_more_is_code(name):
    assert shown(name) in (f"`{name}`", name)
    assert shown(name) == f"`{name}`" or not set(name) & set("$|*<>[]~&\\#")


@pytest.mark.parametrize("name", ["a`b", "``", "`", "a``b`"])
def test_a_fence_is_longer_than_what_it_holds(name):
    written = code(name)
    fence = written[: len(written) - len(written.lstrip("`"))]
    assert fence not in name
    assert written.strip("`").strip() in (name, name.strip("`")) or name in written


def test_no_name_ends_a_cell_or_a_line():
    lines = table(("run", "wins"), [(shown("a|b"), "1"), (shown("a\nb"), "2"), ("x\r\ny\u2028z", "3")]).splitlines()
    assert lines[2:] == ["| `a\\|b` | 1 |", "| `a b` | 2 |", "| x y z | 3 |"]


@pytest.mark.parametrize("name", ["lr$1_$2", "$", "$$", r"a\$b", "_hidden", "$x^2$", r"\frac{1", "a\nb", "a\x00b"])
def test_a_figure_shows_a_name_as_it_is(name):
    """Matplotlib takes dollars for formulas, and leaves out labels that begin with an underscore."""
    from matplotlib.figure import Figure

    figure = Figure()
    axes = figure.subplots()
    axes.plot([0, 1], label=plain(name))
    axes.set_title(plain(name))
    legend = axes.legend()
    figure.draw_without_rendering()
    (text,) = legend.get_texts()
    shown_text, formula = text._preprocess_math(text.get_text())
    assert not formula
    assert shown_text.strip() == "".join(each if each.isprintable() else " " for each in name).strip()

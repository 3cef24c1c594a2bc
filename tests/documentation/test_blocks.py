"""Every block of README and pages and every notebook runs; `run_page` says how.

`make test` runs the Python of all pages but one, which trains, and two pages whole; `make test-docs` every page
and notebook whole, with small budgets where they say so; `make docs` the notebooks as they stand.
"""

import os
import re
import shutil

import pytest

from tests.documentation.pages import NOTEBOOKS, PAGES, ROOT, cells, name, text

pytest.importorskip("sybil", reason="sybil runs the blocks of pages: pip install 'magrounding[dev]'")

FULL = os.environ.get("MAGROUNDING_DOCS") == "1"
WHOLE = {"docs/your_game.md"}
"""Pages whose Python needs what their commands have trained."""
BRIEF = {"docs/your_agent.md", "docs/your_algorithm.md"}
"""Pages that `make test` runs whole: their commands train, evaluate and report in seconds."""
RUN = "train --env ma_rtfm --agents 2 --preset quick --budget 0.0005 --quiet --out run"
RUN += " --stages s1,s2 --seeds 0,1" if FULL else " --stages s1"
RUN += " evaluation.games=4"
"""What stands in a folder `runs/…` that a page uses and no command of it makes."""
BLOCKS = {page: re.findall(r"```(python|bash)\n(.*?)```", text(page), re.DOTALL) for page in PAGES}


@pytest.fixture(scope="module")
def python(forked):
    """Runs a module in a folder, and returns what it printed."""

    def python(*words, cwd):
        around = {**os.environ, "PYTHONPATH": os.pathsep.join([str(cwd), str(ROOT)]), "OMP_NUM_THREADS": "1"}
        around["MPLBACKEND"] = "agg"
        around.pop("MAGROUNDING_REGISTER", None)
        done = forked.run(*words, cwd=cwd, env=around)
        assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-6000:]}"
        return done.stdout

    return python


@pytest.fixture(scope="module")
def trained(python, tmp_path_factory):
    """The folder of a run of two stages and two seeds."""
    folder = tmp_path_factory.mktemp("trained")
    python("magrounding.cli.main", *RUN.split(), cwd=folder)
    return folder / "run"


def runs(blocks):
    """Folders `runs/…` that blocks use before they make them."""
    found, made = set(), set()
    for _, source in blocks:
        for out, used in re.findall(r"--out (runs/[\w-]+)|(?:[ =:\"])(runs/[\w-]+)", source):
            made |= {out} - {""}
            found |= {used} - made - {""}
    return found


def run(pages, folder, request, *flags):
    """Run pages, each in a folder of its own."""
    words = []
    for number, page in enumerate(pages):
        own = folder / str(number)
        own.mkdir()
        for needed in runs(python_of(page) if "--python" in flags else BLOCKS[page]):
            shutil.copytree(request.getfixturevalue("trained"), own / needed)
        words.append(f"{page}={own}")
    return request.getfixturevalue("python")("tests.documentation.run_page", *words, *flags, cwd=folder)


def python_of(page):
    return [block for block in BLOCKS[page] if block[0] == "python"]


@pytest.mark.slow
def test_the_python_of_all_pages_and_notebooks_runs(tmp_path, request):
    """In one process, which imports and compiles once."""
    pages = [page for page in BLOCKS if python_of(page) and name(page) not in WHOLE]
    printed = run(pages, tmp_path, request, "--python")
    assert [name(page) for page in NOTEBOOKS if str(page) not in printed] == []


@pytest.mark.slow
@pytest.mark.parametrize("page", [*filter(BLOCKS.get, BLOCKS)], ids=name)
def test_the_blocks_of_a_page_run(page, tmp_path, request):
    if not FULL and name(page) not in BRIEF:
        pytest.skip("commands that train: make test-docs")
    printed = run([page], tmp_path, request)
    assert str(page) in printed or "left out" in printed
    for out in re.findall(r"magrounding train .*--out (runs/\w+)", text(page)) if name(page) in BRIEF else ():
        assert (tmp_path / "0" / out / "report.md").exists()


@pytest.mark.parametrize("page", NOTEBOOKS, ids=name)
def test_a_notebook_has_no_outputs(page):
    assert [cell["id"] for cell in cells(page) if cell.get("outputs") or cell.get("execution_count")] == []

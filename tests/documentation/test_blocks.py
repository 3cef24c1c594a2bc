"""Every block of README and pages runs; `run_page` says how. Pages that train run with `make test-docs`."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from tests.documentation.pages import PAGES, ROOT, name

pytest.importorskip("sybil", reason="sybil runs the blocks of pages: pip install 'magrounding[dev]'")

FULL = os.environ.get("MAGROUNDING_DOCS") == "1"
ALWAYS = {"docs/your_game.md"}
"""Pages that are run whole in `make test` as well."""
RUN = "train --env ma_rtfm --agents 2 --preset quick --budget 0.0005 --games 4 --quiet --out run"
RUN += " --stages s1,s2 --seeds 0,1" if FULL else " --stages s1"
"""What stands in a folder `runs/…` that a page uses and no command of it makes."""
BLOCKS = {
    page: re.findall(r"```(python|bash)\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL) for page in PAGES
}


def python(*words, cwd):
    around = {**os.environ, "PYTHONPATH": os.pathsep.join([str(cwd), str(ROOT)]), "OMP_NUM_THREADS": "1"}
    around.pop("MAGROUNDING_REGISTER", None)
    done = subprocess.run(
        [sys.executable, *map(str, words)],
        cwd=cwd,
        env=around,
        capture_output=True,
        text=True,
        timeout=880,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-6000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The folder of a run of two stages and two seeds."""
    folder = tmp_path_factory.mktemp("trained")
    python("-m", "magrounding.cli.main", *RUN.split(), cwd=folder)
    return folder / "run"


def runs(blocks):
    """Folders `runs/…` that blocks use before they make them."""
    found, made = set(), set()
    for _, text in blocks:
        for out, used in re.findall(r"--out (runs/[\w-]+)|(?:[ =:\"])(runs/[\w-]+)", text):
            made |= {out} - {""}
            found |= {used} - made - {""}
    return found


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if BLOCKS[page]], ids=name)
def test_the_blocks_of_a_page_run(page, tmp_path, request):
    whole = FULL or name(page) in ALWAYS
    blocks = [block for block in BLOCKS[page] if whole or block[0] == "python"]
    if not blocks:
        pytest.skip("commands that train: make test-docs")
    for folder in runs(blocks):
        shutil.copytree(request.getfixturevalue("trained"), tmp_path / folder)
    printed = python("-m", "tests.documentation.run_page", page, *([] if whole else ["--python"]), cwd=tmp_path)
    assert str(page) in printed or "left out" in printed

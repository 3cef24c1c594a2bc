"""The page `docs/your_game.md` as a newcomer follows it: its file, its commands and its Python, in an empty folder."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "your_game.md").read_text(encoding="utf-8")
PROGRAM = "import sys; from magrounding.cli.main import main; sys.argv[0] = 'magrounding'; sys.exit(main())"


def test_every_block_of_the_page_runs(tmp_path):
    file, check, python = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (commands,) = re.findall(r"```bash\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / re.match(r"# (\w+\.py)\n", file)[1]).write_text(file, encoding="utf-8")
    around = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)]), "OMP_NUM_THREADS": "1"}

    def run(*words):
        done = subprocess.run(
            [sys.executable, *words], cwd=tmp_path, env=around, capture_output=True, text=True, timeout=800
        )
        assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    variables, *lines = commands.splitlines()
    assert variables.split()[1] == "PYTHONPATH=."
    around["MAGROUNDING_REGISTER"] = variables.split()[-1].partition("=")[2]
    run("-c", check)
    for line in lines:
        program, *words = shlex.split(line)
        assert program == "magrounding"
        run("-c", PROGRAM, *words)
    report = (tmp_path / "runs" / "colours" / "report.md").read_text(encoding="utf-8")
    assert "fieldread" in report
    assert "general" in report
    won = re.fullmatch(r"eval ([\d.]+)\n", run("-c", check + python))
    assert won is not None
    assert float(won[1]) > 0.5, "chance is a third; 0.7 was seen, and other machines round otherwise"

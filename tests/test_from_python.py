"""The page `docs/from_python.md`: its blocks run one after another, beside a run in the folder that it names."""

import re
from pathlib import Path

from tests.experiment.tiny_runs import tiny_run

PAGE = (Path(__file__).parents[1] / "docs" / "from_python.md").read_text(encoding="utf-8")


def test_every_block_of_the_page_runs(tmp_path, monkeypatch, capsys):
    tiny_run(tmp_path / "runs" / "quick", "s1")
    monkeypatch.chdir(tmp_path)
    capsys.readouterr()
    blocks, names = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL), {}
    assert len(blocks) == 3
    for block in blocks:
        exec(compile(block, "from_python.md", "exec"), names)
    attention, manual = names["attention"], names["observation"]["manual"]
    assert attention.shape == manual.shape[:2]
    assert len(names["rows"]["value"]) > 0
    assert names["won"].sum() > 0
    assert "said" in capsys.readouterr().out

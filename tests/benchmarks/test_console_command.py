"""`magrounding`: what it lists, what it refuses, and that three commands have a module in a checkout, too."""

import os
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

from magrounding import __version__
from magrounding.cli import main as console
from magrounding.cli.command import CLOSED, CommandLine, run_command
from magrounding.storage import write_json
from tests.full import in_full

ROOT = Path(__file__).parents[2]


def run(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["magrounding", *map(str, arguments)])
    return console.main()


def help_without(imported, *words):
    """What a command prints that imports none of these modules."""
    code = (
        f"import sys, atexit; from magrounding.cli.main import main; sys.argv = ['magrounding', *{words}, '--help']; "
        f"atexit.register(lambda: print(*{imported} & set(sys.modules), end='', file=sys.stderr)); sys.exit(main())"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stderr) == (0, "")
    return done


def test_help_of_train_waits_for_no_torch():
    assert "example: magrounding train" in help_without({"torch", "numba"}, "train").stdout


def test_help_is_a_line_for_each_command_and_imports_none():
    done = help_without({"torch", "tyro", "matplotlib", "minigrid"})
    listed = [line.split(maxsplit=1) for line in done.stdout.splitlines() if line.startswith("    ")]
    assert [name for name, _ in listed] == list(console.commands())
    assert all(about.endswith(".") for _, about in listed)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["trian"], "error: unknown command 'trian'; choose from: train, evaluate, "),
        (["--loud"], "error: unknown command '--loud'; choose from: train, evaluate, "),
        ([], "error: unknown command ''; choose from: train, evaluate, "),
    ],
)
def test_what_is_no_command_is_one_sentence(monkeypatch, capsys, arguments, sentence):
    assert run(monkeypatch, *arguments) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith(sentence)
    assert output.err.count("\n") == 1


@pytest.mark.parametrize("arguments", [("--help",), ("doctor", "--help")])
def test_a_reader_that_ends_early_is_no_error(arguments):
    end, pipe = os.pipe()
    os.close(end)
    line = sys.executable, "-m", "magrounding", *arguments
    done = subprocess.run(line, cwd=ROOT, stdout=pipe, stderr=subprocess.PIPE, timeout=600)
    os.close(pipe)
    assert (done.returncode, done.stderr) == (CLOSED, b"")


def test_its_version(monkeypatch, capsys):
    assert run(monkeypatch, "--version") == 0
    assert capsys.readouterr().out == f"magrounding {__version__}\n"


@pytest.mark.parametrize("prog", ["magrounding train", "python -m benchmarks.curriculum"])
def test_training_says_how_to_go_on_with_the_command_that_was_typed(monkeypatch, capsys, tmp_path, prog):
    from magrounding.cli import train

    commands = []

    def stop(settings, folder, *, command, **options):
        commands.append(command)
        write_json(folder / "config.json", settings.as_dict())
        raise KeyboardInterrupt

    monkeypatch.setattr(train, "run_curriculum", stop)
    arguments = ("--env", "ma_rtfm", "--agents", "3", "--out", f"{tmp_path}/a run", "--device", "cpu")
    assert CommandLine(prog, arguments).run(train) == 130
    again = f"go on with: {prog} --out '{tmp_path}/a run' --resume --device cpu\n"
    assert capsys.readouterr().err == f"stopped; the state is saved, {again}"
    assert commands == [f"{prog} --env ma_rtfm --agents 3 --out '{tmp_path}/a run' --device cpu"]


@pytest.mark.parametrize(
    ("arguments", "encoding"),
    in_full(
        list(product([["--help"], ["match", "--help"], ["réseau"]], ["latin-1", "ascii", "cp1252:strict"])),
        [(["match", "--help"], "ascii"), (["réseau"], "latin-1"), (["--help"], "cp1252:strict")],
    ),
)
def test_what_a_terminal_cannot_show_is_replaced(arguments, encoding):
    line = [sys.executable, "-m", "magrounding.cli.main", *arguments]
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    done = subprocess.run(line, cwd=ROOT, env=environment, capture_output=True, timeout=60)
    assert done.returncode == (0 if "--help" in arguments else 2)
    assert b"Traceback" not in done.stderr
    assert b"usage: magrounding" in done.stdout or b"unknown command" in done.stderr


def test_what_ends_a_game_is_no_character(monkeypatch):
    """The function of a command may print anything at any time."""
    with Path(os.devnull).open("w", encoding="ascii", errors="strict") as terminal:
        monkeypatch.setattr(sys, "stdout", terminal)
        assert run_command(lambda: print("won … 84.7 % ± 2 · ≥ ü")) == 0
    monkeypatch.setattr(sys, "stdout", None)  # as a shell's `>&-` leaves it
    assert run_command(print) == 0

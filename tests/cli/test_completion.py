"""`magrounding completion`: a shell that has read what it prints completes commands and options."""

import subprocess
import sys
from shutil import which

import pytest

from magrounding.cli import main as console

ASK = """
source "$1"; shift
completer=$(complete -p magrounding | sed 's/.*-F \\([^ ]*\\).*/\\1/')
COMP_WORDS=(magrounding "$@"); COMP_CWORD=$#
$completer magrounding "${COMP_WORDS[$COMP_CWORD]}" "${COMP_WORDS[$COMP_CWORD - 1]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""


def script(monkeypatch, capsys, shell):
    monkeypatch.setattr(sys, "argv", ["magrounding", "completion", shell])
    assert console.main() == 0
    return capsys.readouterr().out


@pytest.mark.skipif(which("bash") is None, reason="needs bash")
def test_bash_completes_commands_and_options(monkeypatch, capsys, tmp_path):
    file = tmp_path / "magrounding"
    file.write_text(script(monkeypatch, capsys, "bash"), encoding="utf-8")

    def complete(*words):
        command = ["bash", "-c", ASK, "bash", str(file), *words]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.split()

    assert complete("ser") == ["serve"]
    assert complete("train", "--budg") == ["--budget"]
    assert complete("train", "--prese") == ["--preset"]  # and no piece of its help
    assert set(complete("doctor", "--j")) >= {"--json"}
    assert complete("match", "--env", "ma_r") == ["ma_rtfm"]
    assert complete("train", "--preset", "quick_q") == ["quick_qmix"]
    assert complete("evaluate", "--pretrained", "rtfm") == ["rtfm-nl"]


def test_zsh_gets_a_script_of_all_commands(monkeypatch, capsys):
    text = script(monkeypatch, capsys, "zsh")
    assert text.startswith("#compdef magrounding")
    assert all(name in text for name in console.commands())

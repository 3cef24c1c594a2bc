"""`magrounding doctor`: what is installed and what this machine has; what is required and missing is an error."""

import json
import sys

import pytest
import torch

from magrounding import __version__, extras
from magrounding.cli import main as console
from magrounding.threads import core_limits, plan_threads


@pytest.fixture
def doctor(monkeypatch, capsys):
    """Call the command; return (exit code, output, errors)."""
    monkeypatch.setattr(extras, "extras", lambda: ("web",))

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["magrounding", "doctor", *arguments])
        return console.main(), *capsys.readouterr()

    return call


def test_it_says_what_there_is(doctor, monkeypatch):
    monkeypatch.setattr(extras, "missing_packages", lambda extra="": ())
    code, output, _ = doctor("--json")
    found = json.loads(output)
    assert code == 0
    assert found["magrounding"]["version"] == __version__
    assert torch.__version__.startswith(found["packages"]["torch"].partition("+")[0])
    assert found["machine"]["cores"].startswith(f"{min(core_limits().values())} for this process")
    assert found["machine"]["threads, 2 agents"].startswith(f"{plan_threads(2, 64).agents} for agents")
    assert found["extras"] == {"web": "installed"}


def test_what_is_required_and_missing_is_an_error(doctor, monkeypatch):
    monkeypatch.setattr(extras, "missing_packages", lambda extra="": ("numba>=0.61",))
    code, output, errors = doctor()
    assert code == 2
    assert "extras" in output
    assert errors == "error: magrounding lacks numba>=0.61: install it again with pip\n"


def test_a_gpu_is_named(doctor, monkeypatch):
    from magrounding.cli import doctor as module

    class Properties:
        name, total_memory = "A GPU", 80 * 2**30

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda k: Properties)
    assert module.findings()["machine"]["GPU"] == "A GPU, 80 GiB, A GPU, 80 GiB"

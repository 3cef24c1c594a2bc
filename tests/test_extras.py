"""Extras: every one says what it is for, and what it lacks, by the metadata of the installed package."""

import tomllib
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import SimpleNamespace

import pytest

from magrounding import extras

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
METADATA = SimpleNamespace(
    requires=[
        "numpy>=1.26",
        'nle<1.4,>=1.3; extra == "nethack"',
        'scienceworld>=1.2; extra == "scienceworld"',
        'alfworld>=0.4.2; extra == "alfworld"',
        'pywin>=1; sys_platform == "win32" and extra == "nethack"',
        'magrounding[alfworld,nethack]; extra == "all"',
    ]
)
VERSIONS = {"numpy": "2.0", "nle": "1.3.1", "scienceworld": "1.2.3"}


@pytest.fixture
def described(monkeypatch):
    """The package requires what METADATA says, VERSIONS are installed, and no program is."""

    def version(name):
        if name not in VERSIONS:
            raise PackageNotFoundError(name)
        return VERSIONS[name]

    monkeypatch.setattr(extras, "distribution", lambda _: METADATA)
    monkeypatch.setattr(extras, "version", version)
    monkeypatch.setattr(extras, "which", lambda _: None)


def test_every_extra_says_what_it_is_for():
    assert set(PROJECT["optional-dependencies"]) <= set(extras.FEATURES)


def test_a_package_of_another_version_is_missing(described, monkeypatch):
    monkeypatch.setitem(VERSIONS, "nle", "1.4")
    assert extras.missing_packages("nethack") == ("nle<1.4,>=1.3 (1.4 is installed)",)


def test_programs_are_missing_where_they_are_started(described):
    assert extras.state("scienceworld") == "lacks Java, which your system's packages have"


def test_programs_that_compile_are_missing_until_the_packages_are_there(described, monkeypatch):
    assert extras.state("alfworld") == (
        "lacks cmake and a C++ compiler, which your system's packages have; "
        "lacks alfworld>=0.4.2: pip install 'magrounding[alfworld]'"
    )
    monkeypatch.setitem(VERSIONS, "alfworld", "0.4.2")
    assert extras.state("alfworld") == "installed"

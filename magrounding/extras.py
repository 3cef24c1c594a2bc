"""Extras of the package, its optional features: which there are, and what each lacks on this machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.metadata import Distribution, PackageNotFoundError, distribution, version
from shutil import which

from packaging.requirements import Requirement

from magrounding.errors import ConfigurationError

PACKAGE = "magrounding"

FEATURES: Mapping[str, str] = {
    "nethack": "the environment nethack",
    "babyai": "the environment babyai",
    "alfworld": "the environment alfworld",
    "scienceworld": "the environment scienceworld",
    "pieces": "making vocabularies of word pieces (magrounding pieces)",
    "lm": "pretrained language models as readers",
    "tianshou": "envs for tianshou",
    "supersuit": "wrappers of SuperSuit",
    "play": "playing at the terminal, films in .mp4",
    "web": "playing in the browser (magrounding serve)",
    "llm": "language models as players (llm:NAME)",
    "browser": "tests of the page in a real browser",
    "ray": "training on a Ray cluster (train --cluster)",
    "trackers": "runs in W&B, MLflow and Trackio (train --tracker)",
    "sweeps": "sweeps by Optuna (magrounding sweep --optuna)",
    "efficiency": "estimates of sample efficiency (python -m benchmarks.sample_efficiency)",
    "clients": "envs for TorchRL, BenchMARL and Stable-Baselines3",
    "agilerl": "envs for AgileRL",
    "verifiers": "games for verifiers, to evaluate and train language models",
    "openenv": "a server of games for OpenEnv",
    "docs": "building the documentation site",
    "hub": "publishing teams on a model hub, and loading them from there",
    "all": "the light extras together",
    "dev": "tests, linters, type checker",
}
"""Extra → what it is for."""

_RUN_BY: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "scienceworld": {"Java": ("java",)},
    "browser": {"Chromium": ("chromium", "chromium-browser", "google-chrome")},
}
"""Extra → program that it starts → names by which it may be installed."""
_COMPILED_BY: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "alfworld": {"cmake": ("cmake",), "a C++ compiler": ("c++", "g++", "clang++")},
}
"""The same of programs that are needed only until the extra's packages are installed."""


def extras() -> tuple[str, ...]:
    """Return the names of all extras; ConfigurationError where the package is not installed."""
    return tuple(_metadata().metadata.get_all("Provides-Extra") or ())


def missing_packages(extra: str = "") -> tuple[str, ...]:
    """Return the requirements of an extra, or of the package itself (""), that are not met, with their versions.

    ConfigurationError where the package is not installed.
    """
    return tuple(filter(None, map(_missing, requirements(extra))))


def state(extra: str) -> str:
    """Return "installed", or what an extra lacks and what to do about it, as one text."""
    packages = missing_packages(extra)
    programs = {**_RUN_BY.get(extra, {}), **(_COMPILED_BY.get(extra, {}) if packages else {})}
    lacking = [name for name, known in programs.items() if not any(map(which, known))]
    by_system = [f"lacks {' and '.join(lacking)}, which your system's packages have"] if lacking else []
    by_pip = [f"lacks {', '.join(packages)}: pip install '{PACKAGE}[{extra}]'"] if packages else []
    return "; ".join([*by_system, *by_pip]) or "installed"


def requirements(extra: str = "") -> Iterator[Requirement]:
    """Yield what an extra, or the package itself (""), requires on this platform; an extra within it is unfolded."""
    for each in map(Requirement, _metadata().requires or ()):
        always = each.marker is None or each.marker.evaluate({"extra": ""})
        if not (always if not extra else not always and each.marker and each.marker.evaluate({"extra": extra})):
            continue
        if each.name == PACKAGE:
            for inner in sorted(each.extras):
                yield from requirements(inner)
        else:
            yield each


def _metadata() -> Distribution:
    try:
        return distribution(PACKAGE)
    except PackageNotFoundError:
        raise ConfigurationError(
            f"{PACKAGE} is not installed, only its files are here: extras are known after pip install"
        ) from None


def _missing(requirement: Requirement) -> str:
    """Return what is missing of a requirement, or ""."""
    found = version_of(requirement.name)
    if found and requirement.specifier.contains(found, prereleases=True):
        return ""
    there = f" ({found} is installed)" if found else ""
    return f"{requirement.name}{requirement.specifier}{there}"


def version_of(package: str) -> str:
    """Return the version of a package that is installed, or ""."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""

"""Import paths of version 0.3 and before, for one version: those of the pages and all of `play` work, and warn."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

MOVED = {
    "adapters": "extensions.clients",
    "adapters.openenv": "extensions.language_models.openenv",
    "adapters.verifiers": "extensions.language_models.verifiers",
    "agents.guide": "extensions.lge.guide",
    "experiment.match": "teams.match",
    "experiment.statistics": "statistics",
    "experiment.trackers": "extensions.trackers",
    "play": "teams",
    "play.demonstrations": "training.demonstrations",
    "play.keyboard": "extensions.people.keyboard",
    "play.language_models": "extensions.language_models",
    "play.owner": "owner",
    "play.recording": "training.recording",
    "play.run_folder": "run_folder",
    "play.script": "single.script",
    "play.terminal": "extensions.people.terminal",
    "play.web": "extensions.people.web",
}
"""Old → new, of this package; with what is below."""


class Renamed(MetaPathFinder, Loader):
    """Finder of modules by their old names; it is asked last."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        parts = name.split(".")[1:] if name.startswith("magrounding.") else []
        for n in range(len(parts), 0, -1):
            if new := MOVED.get(".".join(parts[:n])):
                return ModuleSpec(name, self, loader_state=".".join(["magrounding", new, *parts[n:]]), is_package=True)
        return None

    def exec_module(self, module: ModuleType) -> None:
        new = module.__spec__.loader_state if module.__spec__ else ""
        vars(module).update({name: x for name, x in vars(import_module(new)).items() if not name.startswith("__")})
        warnings.warn(f"{module.__name__} is {new} now", DeprecationWarning, stacklevel=2)

"""The stock engine of ALFWorld."""

from __future__ import annotations

from importlib import import_module

from magrounding.single.alfworld import package


class Stock:
    """The engine as the package has it, its names made by the package's own class; nothing is remembered."""

    def __init__(self):
        package.engine()
        self.env = import_module("textworld.envs.pddl.pddl").PddlEnv()
        self.env.request_infos.admissible_commands = True

    def start(self, game):
        with package.untouched():
            self.env.load(game)
            names = package.part("agents.utils.misc").Demangler(game_infos=self.env._entity_infos)
            for info in self.env._entity_infos.values():
                info.name = names.demangle_alfred_name(info.id)
            return self.said(self.env.reset())

    def step(self, command):
        return self.said(self.env.step(command)[0])

    def said(self, state):
        return state["feedback"], tuple(state["admissible_commands"]), state["won"]

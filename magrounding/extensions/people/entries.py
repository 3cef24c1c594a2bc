"""What people need, by name."""

from magrounding.registry import COMMANDS, SERVICES, CommandEntry, Part

_COMMANDS = {
    "play": ("Play at this terminal together with agents, or watch them.", ""),
    "serve": (
        "Serve a page on which people and agents play together in the browser.",
        "starting: PyTorch and the environments are loaded first, which takes seconds\n",
    ),
    "study": ("Print the table of results of a study that was held in the browser.", ""),
}


def register() -> None:
    """Enter commands, the terminal of `watch`, and the keyboard of `record`."""
    for name, (about, starting) in _COMMANDS.items():
        COMMANDS[name] = CommandEntry(name, about, f"magrounding.extensions.people.cli.{name}", "record", starting)
    SERVICES.add(Part("terminal", "magrounding.extensions.people.cli.play:find_terminal"))
    SERVICES.add(Part("keyboard", "magrounding.extensions.people.keyboard:Keyboard"))

"""What language models add, by name."""

from magrounding.registry import COMMANDS, PLAYERS, CommandEntry, Part

_ABOUT = "Write games of the oracle, teams or people as chats, to fine-tune language models."


def register() -> None:
    """Enter the players "llm:NAME", and the command."""
    PLAYERS.add(Part("llm", "magrounding.extensions.language_models.player:LanguageModels"))
    COMMANDS["export-chats"] = CommandEntry(
        "export-chats", _ABOUT, "magrounding.extensions.language_models.cli.export_chats", behind="replay"
    )

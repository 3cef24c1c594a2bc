"""What reads running text, by name."""

from pathlib import Path

from magrounding.registry import COMMANDS, PREPARATIONS, SEGMENTS, TEAMS, CommandEntry, Part

_COMMANDS = {
    "segments": "Give a trained team a reader of running text (docs/running_text.md).",
    "templates": "Check a file of sentences for RTFM's manuals, and list what twenty manuals claim.",
}
_SEGMENTS = {"stops": "segments:Stops", "learnt": "segments:Segmenter", "edges": "edges:Edges"}
_TEAM = "ma_rtfm-s6-2agents"
TEAM = Path(__file__).parent / "pretrained" / _TEAM
"""The trained team of s6."""


def register() -> None:
    """Enter commands, what finds statements, that it learns before each stage, and the team of s6."""
    for name, about in _COMMANDS.items():
        COMMANDS[name] = CommandEntry(name, about, f"magrounding.extensions.running_text.cli.{name}", behind="publish")
    for kind, place in _SEGMENTS.items():
        SEGMENTS.add(Part(kind, f"magrounding.extensions.running_text.{place}"))
    PREPARATIONS.add(Part("segments", "magrounding.extensions.running_text.segmenting:prepare_segmenters"))
    TEAMS.add(Part(_TEAM, f"{__name__}:TEAM"))

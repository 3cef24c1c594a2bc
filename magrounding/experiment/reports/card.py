"""The model card of a published team: metadata that model hubs read, results, and how to load it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from magrounding.experiment.config import RunConfig
from magrounding.experiment.tables import code, percent, shown, table
from magrounding.pretrained.hub import HUB
from magrounding.storage import json_text

CARD_FILE = "README.md"
_TASK = "reinforcement-learning"


def model_card(
    name: str, settings: RunConfig, stage: str, about: Mapping[str, Any], *, repository: str, license: str, film: str
) -> str:
    """Return the card as Markdown with YAML before it.

    Args:
        name: of the team.
        settings, stage: of its run.
        about: content of its `about.json`.
        repository: on a hub, OWNER/NAME; "": it is loaded from a folder.
        license: of the weights, by its SPDX id; "": none is named.
        film: Markdown of a film or a picture with its caption; "": none.
    """
    env, agents = settings.env, settings.agents
    team = f"A team of {agents} agents" if agents > 1 else "An agent"
    place = f"stage {code(stage)} of {code(env)}" if stage else code(env)
    source = f"{HUB}{repository}" if repository else name
    games = settings.resolve().stages[stage].games
    options = "".join(f", {option}={value!r}" for option, value in games.options.items())
    sections = [
        f"# {shown(name)}",
        f"{team} ({code(settings.agent)}), trained on {place} with magrounding.",
        film,
        "## Load",
        f"```bash\npip install 'magrounding{'[hub]' if repository else ''}'\n```",
        "\n".join(
            [
                "```python",
                "import magrounding as mg",
                "",
                f"team = mg.load_team({source!r}){'' if repository else '  # the path of this folder'}",
                f"env = mg.make({env!r}{options})",
                "observations, infos = env.reset(seed=0)",
                "memory = team.initial_memory(1)",
                "while env.agents:",
                "    actions, memory = team.act(observations, memory, infos, greedy=True)",
                "    observations, rewards, terminations, truncations, infos = env.step(actions)",
                "```",
            ]
        ),
        f"Or play its games at once: `magrounding evaluate --run {source}`. Files are safetensors and JSON; nothing in "
        "them is executed.",
        "## Results",
        table(["set of games", "play", "won", "95 % interval", *(["score"] if about["scores"] else [])], _rows(about)),
        f"{about['games']:,} games of each set, one training run (seed {about['seed']}). Intervals are over games "
        "(Jeffreys). Games are won by the weights in float32; those of this folder are rounded to float16.",
        "## Training",
        table(
            ["", ""],
            [
                ["learnt by", about["learnt_by"]],
                ["environment steps", f"{about['environment_steps']:,}"],
                ["minutes", f"{about['training_minutes']}"],
                ["date", about["date"]],
                ["command", code(str(about["command"] or "–"))],
            ],
        ),
    ]
    return f"{_metadata(name, settings, stage, about, license)}\n" + "\n\n".join(filter(None, sections)) + "\n"


def _rows(about: Mapping[str, Any]) -> Iterator[list[str]]:
    for key, share in about["win_rates"].items():
        games, play = key.rsplit(", ", 1)
        low, high = about["intervals"][key]
        score = [f"{about['scores'][key]:.2f}"] if about["scores"] else []
        yield [games, play, percent(share), f"[{percent(low)}, {percent(high)}]", *score]


def _metadata(name: str, settings: RunConfig, stage: str, about: Mapping[str, Any], license: str) -> str:
    """YAML between two lines of dashes; strings are written as in JSON, which is YAML."""
    env, text = settings.env, json_text
    tags = (_TASK, "multi-agent" if settings.agents > 1 else "single-agent", "language-grounding", env, settings.agent)
    lines = [
        "---",
        "library_name: magrounding",
        f"pipeline_tag: {_TASK}",
        *([f"license: {text(license)}"] if license else []),
        "tags:",
        *(f"- {text(tag)}" for tag in tags),
        "model-index:",
        f"- name: {text(name)}",
        "  results:",
    ]
    for key, share in about["win_rates"].items():
        games, play = key.rsplit(", ", 1)
        lines += [
            f"  - task: {{type: {_TASK}, name: {text('reinforcement learning')}}}",
            f"    dataset: {{type: {text(env)}, name: {text(' '.join(filter(None, (env, stage, games))))}}}",
            "    metrics:",
            f"    - {{type: win_rate, name: {text(f'win rate, {play} play')}, value: {share}}}",
        ]
    return "\n".join([*lines, "---"])

"""Check a file of sentences for RTFM's manuals: `magrounding templates check sentences.json`."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import tyro

from magrounding.cli.command import CommandLine
from magrounding.envs.rtfm.constructions import POLARITIES, TEXTS
from magrounding.envs.rtfm.facts import Fact
from magrounding.envs.rtfm.games import MaRtfm, prose_vocabulary
from magrounding.envs.rtfm.sentences import find_sentences
from magrounding.envs.rtfm.world import RTFMWorld
from magrounding.schema import Natural

MANUALS = 20


@dataclass(frozen=True)
class Arguments:
    """Check a file of sentences (option templates of rtfm and ma_rtfm), render 20 manuals, and list their claims."""

    action: Annotated[Literal["check"], tyro.conf.Positional]
    """Action, of which there is one."""
    file: Annotated[str, tyro.conf.Positional]
    """The file, as docs/running_text.md describes it."""
    split: Literal["train", "eval", "eval_new", "eval_paraphrase", "eval_construction", "eval_minimal"] = "train"
    """Split of the manuals."""
    seed: Natural = 0
    """Seed of the first manual."""


def run(arguments: Arguments, line: CommandLine) -> None:
    """Print the numbers of sentences and the manuals of stage s6."""
    sentences = find_sentences(arguments.file, language=True)
    count = Counter(template.split for template in sentences.templates)
    known = prose_vocabulary()
    new = sum(word not in known for word in sentences.words)
    print(f"{sentences.source}: {', '.join(f'{count[split]} of {split}' for split in TEXTS)}; {new} new words")
    world = RTFMWorld(MANUALS, MaRtfm(stage="s6", split=arguments.split, templates=arguments.file))
    world.reset(arguments.seed + np.arange(MANUALS))
    for row in range(MANUALS):
        text = world.text(row)
        print(f"\nseed {arguments.seed + row}: {' '.join(text['manual'])}\n  goal: {text['goal']}")
        print("\n".join(f"  {claim}" for claim in claims_of(world.facts(row))))


def claims_of(facts: tuple[Fact, ...]) -> list[str]:
    """Return the claims of a manual, a line for each polarity, relation and object."""
    subjects: dict[tuple[int, str, str], list[str]] = {}
    for fact in facts:
        key = POLARITIES.index(fact.polarity), fact.object, fact.relation
        subjects.setdefault(key, []).append(fact.subject)
    return [
        f"{POLARITIES[polarity]}: {', '.join(named)} {relation} {name}"
        for (polarity, name, relation), named in sorted(subjects.items())
    ]

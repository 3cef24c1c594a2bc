"""Lists the words of NetHack's texts: `python -m tools.nethack.collect --out words.json`.

It plays games at random, and takes the names of all monsters and things. What is kept are single words that several
games had, in the order of the alphabet; numbers have ids of their own. It also says how long the texts were.
"""

from __future__ import annotations

import argparse
from collections import Counter
from importlib.metadata import version
from typing import Any

import nle.nethack
import numpy as np

from magrounding.output import show_anything
from magrounding.single.nethack.env import NetHackEnv
from magrounding.single.nethack.options import GOALS, PROMPTS, NetHack
from magrounding.single.one_agent import AGENT
from magrounding.single.tokenizer import split
from magrounding.storage import json_text, user_path

_FEWEST = 3
"""Games that have a word: what is engraved in the dust is garbled."""


def main() -> None:
    """Play, and write the list."""
    show_anything()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=user_path, required=True, help="the file to write")
    parser.add_argument("--games", type=int, default=4000, help="training games at random")
    parser.add_argument("--steps", type=int, default=150, help="steps of each")
    arguments = parser.parse_args()
    lengths: dict[str, Counter[int]] = {"message": Counter(), "status": Counter()}
    games: Counter[str] = Counter()
    env, rng = NetHackEnv(NetHack(task="score", max_cycles=arguments.steps)), np.random.default_rng(0)
    for seed in range(arguments.games):
        _, infos = env.reset(seed=seed)
        words: set[str] = set()
        while env.agents:
            for name, counts in lengths.items():
                found = split(infos[AGENT]["text"][name])
                words.update(found)
                counts[len(found)] += 1
            infos = env.step({AGENT: int(rng.integers(env.spec.num_actions))})[4]
        games.update(words)
    env.close()
    for name, counts in lengths.items():
        print(f"{name}: longest {max(counts)}, of {counts.total()} texts")
    words = {word for word, count in games.items() if count >= _FEWEST}
    words.update(word for text in (*PROMPTS.values(), *GOALS.values(), *_names()) for word in split(text))
    content = {
        "simulator": f"nle {version('nle')}",
        "words": sorted(word for word in words if not word.isdecimal()),
    }
    arguments.out.write_text(json_text(content, indent=0) + "\n", encoding="utf-8")


def _names() -> list[str]:
    """Return the names of monsters, and of things: what they are, and what they look like."""
    nethack: Any = nle.nethack  # what comes from C is not declared
    things = [nethack.objclass(number) for number in range(nethack.NUM_OBJECTS)]
    names = [nethack.permonst(number).mname for number in range(nethack.NUMMONS)]
    names += [name for thing in things for name in (nethack.OBJ_NAME(thing), nethack.OBJ_DESCR(thing)) if name]
    return names


if __name__ == "__main__":
    main()

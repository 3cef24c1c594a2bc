"""NetHack: SILG's three prompts, and the tasks of the NetHack Learning Environment (Küttler et al. 2020), on nle.

Description:
    An agent explores a dungeon that it sees only in part, room by room. In each episode a sentence states what counts:
    gold, new places, or the score (Zhong et al. 2021, app. D). It has won once it has gained as much as people gain on
    average. Rules and program are those of NetHack 3.6.6 as nle runs it (the extra `nethack`); the agent is a human
    monk. `task=staircase`, `eat` and others are nle's own tasks, with its rewards.

Text:
    `goal` is the prompt; `message` the game's first line; `status` the numbers of its last two lines, without the turn.
    `single.tokenizer` writes them, from the words of 300 games and the names of all monsters and things.

Actions:
    0 more (to go on after a message), 1–8 a step in one of eight directions, 9–16 as far as it goes in that direction,
    17 up, 18 down, 19 wait, 20 kick, 21 eat, 22 search. None is ever masked. Kick and eat ask a question, which the
    next action answers.

Observations:
    See `EnvSpec`; ids are int16, 0 is padding.

    ===============  ============  =================================================================================
    `grid`           [21, 79, 1]   the glyph of each cell as an id; `characters=True` and `colours=True` add what the
                                   screen shows there
    `position`       [2]           row and column of the agent; −1 once it is dead
    `goal`           [12]          the prompt
    `message`        [48]          the game's message
    `status`         [32]          level, gold, hit points, power, armour class, experience, score, and states
    `action_mask`    [23]          ones
    ===============  ============  =================================================================================

    Glyph g has the id `words.first_ids()[0] + g`, behind words. `crop=21` shows so many rows and columns around the
    agent instead of the whole map.

Expert:
    `best_actions()` asks a scripted explorer, in SILG's tasks only, who knows what has been shown in the episode.

Rewards:
    SILG: −0.02 in a step; 1 in the step that wins, −1 in any other that ends the episode. Tasks of nle: its own.

Ends:
    SILG: won when the episode has gained what `thresholds` says: gold pieces 5.28, cells seen 90.4, points 10.83 (or
    "new": 5, 315.5, 56.75). Cells count those seen at first. Terminated, too, by death; truncated after `max_cycles`
    steps, 80 as in SILG's program (its paper: 50), or 5,000 in tasks of nle. The score of those is the sum of rewards.

Seeds:
    A split is a million of NetHack's seeds; seed and episode choose one. The same seed is the same game, in any
    process. One thing escapes: shopkeepers have names that go by the clock, which only their sayings show. Phases of
    the moon go by the seed.

Arguments:
    See `NetHack`.

Differences from the paper:
    * The first seeds of splits are 0, 1,000,000 and 2,000,000, as in the program.
    * Words are a list of the world's own, not word pieces.
    * Scrolls, potions and wands are picked up in all three tasks; nle's own gold task picks up gold only.
    * `status` is a text. SILG's program shows the two lines beside the map.
"""

from magrounding.single.nethack.options import ACTIONS, SPLITS, TASKS, THRESHOLDS, NetHack

__all__ = ["ACTIONS", "SPLITS", "TASKS", "THRESHOLDS", "NetHack"]

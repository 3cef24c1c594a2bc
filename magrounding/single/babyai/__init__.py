"""BabyAI: one agent, a small language, nineteen levels (Chevalier-Boisvert et al. 2019), on minigrid's program.

Description:
    An agent walks through rooms with doors, keys, balls and boxes, sees the 7 × 7 cells before it, and follows an
    instruction: go to, pick up, open or put something next to something, alone or several in sequence. A level fixes
    the rooms, what lies in them and the instructions that occur. Rules, levels and checker are minigrid's (3.x, the
    extra `babyai`), whose games are played here by kernels over a batch, step by step as minigrid plays them; `PutNext`
    in the paper's form, nine rooms with 18 objects, which minigrid lacks, is defined here.

Text:
    `goal` is the mission in lower case, without its commas, which only ever stand before "then". The words of the
    mission and of the grid are one vocabulary, the same for every level: a "red ball" has the same two ids in both.
    The longest mission of the grammar has 72 words (`words.MAX_WORDS`), and every level's `goal` has that many places.

Actions:
    0 left, 1 right (turns), 2 forward, 3 pickup, 4 drop, 5 toggle (doors; a box opens and is gone), 6 done (does
    nothing). None is ever masked; one that cannot be carried out does nothing.

Observations:
    See `EnvSpec`; ids are int16, 0 is padding.

    ===============  ============  =================================================================================
    `grid`           [7, 7, 3]     words for each cell: what is there, its colour, the state of a door; the agent
                                   stands in the middle of the last row, looks up, and its cell shows what it carries
    `direction`      [1]           0 east, 1 south, 2 west, 3 north
    `displacement`   [2]           only with the option `displacement`: rows down and columns to the right of where the
                                   episode began, which the agent's own moves and views tell as well
    `goal`           [72]          the mission
    `action_mask`    [7]           ones
    ===============  ============  =================================================================================

    Rows of `grid` are the second axis of minigrid's image and columns the first; `words.raw_image` gives that image
    back exactly, and `words.WORD_TO_TYPE`, `WORD_TO_COLOUR`, `WORD_TO_STATE` are the tables to do so in a network.
    Cells that are hidden show "unseen" and nothing else, empty ones "empty" and nothing else.

Rewards:
    1 − 0.9 n / limit in step n that fulfils the mission, else 0.

Ends:
    Won when the mission is fulfilled; truncated after the level's limit for the mission (64 cells a room × rooms ×
    navigations the mission needs: 64 … 4608 steps) or after `max_cycles`. A win in the last step is no truncation.

Expert:
    `best_actions()` asks minigrid's bot, which is created at the first question of an episode and follows whatever is
    played from then on; ask from the first step on where missions have several parts. It knows no way after a box has
    been opened; `expert.Expert` says when it counts as failed.

Arguments:
    See `BabyAI`.

Differences from the paper:
    * Levels are drawn by minigrid 3.x, whose generator differs in details from the released program. Games of Unlock
      and GoToImpUnlock in which every key to the locked room lies within it are drawn again.
    * Episodes have splits: seeds of minigrid from three disjoint ranges (the paper keeps seeds apart by hand).
    * Reward is not scaled (the paper's trainer multiplies it by 20).
"""

from magrounding.single.babyai.options import LEVELS, SPLITS, BabyAI

__all__ = ["LEVELS", "SPLITS", "BabyAI"]

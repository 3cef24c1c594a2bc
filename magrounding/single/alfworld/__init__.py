"""ALFWorld: household tasks in text, as SILG plays them (Shridhar et al. 2021; Zhong et al. 2021), on TextWorld.

Description:
    An agent stands in a room and looks for an object in cabinets, drawers and on tables; it takes it, cleans, heats or
    cools it, and puts it where the goal says, or looks at it under a lamp. There are six types of tasks. Rules, texts
    and the engine are those of the packages alfworld and TextWorld (the extra `alfworld`), whose own games are a
    download too large to ship. This package comes with scenes of its own in the same format, and plays those as well.

Text:
    The engine's own, in lower case, as `single.tokenizer` writes it. The words of its grammar, of ALFRED's things and
    the numbers to 30 are one id each; what else a game of the user's says is spelt in texts, and "<unk>" in the grid.

Actions:
    The engine offers commands, other ones in every step: row j of `choices` is action j. "look" is left out, and what
    exceeds 60 commands, of the least use first (`env.choices_of`): never one that takes or uses something while there
    are others. The env counts them (`left_out`). A choice that is not there is masked, and does nothing.

Observations:
    See `EnvSpec`; ids are int16, 0 is padding.

    ===============  ============  =================================================================================
    `grid`           [40, 1, 2]    kind and number of each thing: the receptacles of the room, then what the last
                                   answer speaks of
    `goal`           [24]          the task
    `feedback`       [144]         the engine's last answer; at first, what there is in the room
    `history`        [3, 10]       the last three commands, the oldest first
    `choices`        [60, 10]      the commands
    `action_mask`    [60]          which of them there are
    ===============  ============  =================================================================================

Rewards:
    1 in the step that fulfils the task, else 0.

Ends:
    Won when the task is fulfilled; truncated after `max_cycles` steps. A win in the last step is no truncation.

Scenes:
    Drawn by `tools.alfworld` of a checkout, 384 of them in the package. The splits share no room: kitchen 3 has the
    same furniture in every scene, and is in one split only. And they share no object for the same type of task: what
    has to be heated in tests is cooled or carried in training, but never heated. Every scene is won by the planner's
    commands.

    `games=FOLDER` plays a user's games instead, those of ALFWorld's download or of our command: what lies in folders
    `train`, `valid` (or `valid_seen`) and `test` (or `valid_unseen`), at any depth below that folder. Games in none of
    them are refused, so that no game is of two splits. Their text grammar may put names together and nothing else; one
    that computes anything is refused, as the engine would run it.

Expert:
    `best_actions()` asks a script that knows what the game has said and nothing more. While it looks for something,
    every place that it has not looked into is as good as another, so it can be imitated from what is shown. It reads
    the task from the goal's sentence; of a sentence that it does not understand it knows nothing.

Arguments:
    See `ALFWorld`.

Differences from the papers:
    * Scenes are ours, not ALFRED's: rooms, what lies in them, and splits.
    * Words are a list of the world's own, not word pieces.
    * The history is the last three commands. Neither paper says what it consists of.
    * No step penalty, which SILG's learner adds by itself.
"""

from magrounding.single.alfworld.options import ALFWorld
from magrounding.single.alfworld.scenes import SPLITS, TASKS

__all__ = ["SPLITS", "TASKS", "ALFWorld"]

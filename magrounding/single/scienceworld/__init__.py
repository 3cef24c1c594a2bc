"""ScienceWorld: one agent does elementary science in a text adventure (Wang et al. 2022), by the simulator's program.

Description:
    Ten rooms with substances, devices, plants and animals, thermodynamics, electricity, chemistry and growth, and 30
    tasks of primary school: boil water, find an animal, measure a melting point, grow a fruit, test what conducts. A
    task has 20 to 1,400 variations, of which the simulator's own division names those for training, validation and
    test. The program is the package scienceworld (1.2, the extra `scienceworld`), which runs in Java 8 or later.

Text:
    Every text is the program's own, written as `single/tokenizer.py` says: lower case, words and signs. The words that
    occur in training variations are listed in `data/words.json`; others and numbers are spelt, so none is unknown, and
    `tokenizer.plain_text` gives back what was written. What is longer than its field is cut.

Actions:
    The commands that are valid now, in the order of the alphabet, up to 5,120 of them and other ones in every step:
    row j of `choices` is action j. A masked action plays nothing: the game stands still for a step.

Observations:
    See `EnvSpec`; ids are int16, 0 is padding.

    ===============  ============  =================================================================================
    `task`           [128]         what is to be done, the same for the whole episode
    `observation`    [320]         the answer to the last command
    `look`           [320]         the room and what can be seen in it
    `inventory`      [128]         what is held
    `choices`        [5120, 20]    the valid actions
    `action_mask`    [5120]        which rows there are
    ===============  ============  =================================================================================

Rewards:
    The change of the score, on the scale of 0 to 100. A step that fails the task (focusing on the wrong thing, mostly)
    costs 100 and the score reached; with `failure_penalty=False` the score reached alone.

Ends:
    Terminated when the task is completed or failed, truncated after 100 steps. `score` is 0 to 100, 0 in a failed game;
    won is a score of 100. Papers give the score divided by 100.

Determinism:
    A game depends on its variation and the commands played alone, whatever other games its process plays; see
    `simulation.Simulation` for how.

Faults:
    One Java process serves all games of a worker. One that dies or stands still for five seconds is lost with the
    worker, which is replaced and counted as any other; in this process an error is raised, and the next reset starts
    another.

Expert:
    `best_actions()` follows the simulator's gold path in the words of the valid actions (`gold.py`) as long as the game
    has not left it. It is found at the first question about a variation, in seconds, and kept in the user's cache.

Arguments:
    See `ScienceWorld`.

Differences from the simulator's own env:
    * `score` of a failed game is 0, not −100.
    * A game is loaded once at a reset, not twice, and its valid actions are asked for once a step and in parts.
    * The limit truncates; there it terminates.
"""

from magrounding.single.scienceworld.options import SPLITS, TASKS, ScienceWorld

__all__ = ["SPLITS", "TASKS", "ScienceWorld"]

"""Read to Fight Monsters, for one agent and for several, and rock-paper-scissors: one batched world.

Description:
    Monsters of three teams walk a walled map, and weapons lie about. The goal names a team; the document says which
    monsters belong to which team and which weapons beat which element. An agent wins by taking a weapon that beats its
    target's element and meeting the target with it; meeting anyone else, or the target with anything else, is death.
    Which names belong together is drawn anew every episode, so there is nothing to remember but how to read. With n
    agents there are n targets, n good weapons and, from stage S2 on, a distractor monster and a distractor weapon: the
    team has to share the work. Ids: `rtfm` (n = 1, Zhong et al. 2020), `ma_rtfm` (n ≥ 1, Ding et al. 2023) and
    `rock_paper_scissors` (a dragon named by one of three letters, and who beats whom).

Text:
    `manual` has four statements about elements ("blessed , gleaming beat fire .") and three about teams ("bat , imp ,
    wolf are rebel enclave ."), in random order; `goal` names the target team. Plain tasks have one sentence shape of
    each kind, language tasks draw a template for every statement: 12 about elements, 10 about teams, 10 goals. A second
    set of the same size is kept for the split `eval_paraphrase`. `eval_new` has monsters, modifiers and weapons that
    never occur in training. Assignments of `train` and `eval` are disjoint (see `splits`). `manual="reassigned"` is a
    test of reading: every statement is false, so who wins as often as with the true document has not read it.
    `layout` puts the same sentences together: a row for each, two or three to a row, all in one row, or all in one row
    without punctuation. `constructions` states several facts in one sentence, denies, excepts, points back, takes back
    (see `constructions`): two of them are held out for the split `eval_construction`. In `eval_minimal` games 2k and
    2k + 1 have the same words in every sentence and opposite meaning. `templates` takes all sentences from a file of
    others (see `sentences`). `facts()` says what a manual claims, and where.

Actions:
    0 stay, 1 up, 2 down, 3 left, 4 right. Walking into a wall is masked and does nothing. Where the manual is split
    (`reading` of `ma_rtfm`) 5 … 11 are `tell 1` … `tell 7`: the agent stands still, and at the end of the step its own
    row r of the manual is in that row of every teammate's. A row that is not its own, is empty or was told is masked.

Observations:
    See `EnvSpec`; ids are int16, 0 is padding.

    ==============  ===================  ===============================================================
    `grid`          [H, W, 2 occupants]  two words for each occupant of a cell: me, allies, monsters, items
    `position`      [2]                  row and column of the agent; −1, −1 when dead
    `distance`      [H, W, 2]            (dx / W, dy / H) to each cell (single games; from `position`)
    `manual`        [7, L]               the document; shared by the team; [3, L] or [1, L] in other layouts;
                                         a split one: the agent's own rows and those told, 0 in the others
    `goal`          [G]                  the instruction; shared by the team
    `inventory`     [2]                  words of the weapon held
    `action_mask`   [5]                  which actions do something; [12] where agents tell
    `teammates`     [n−1, 4]             row, column and inventory of the others, in agent order; absent when n = 1
    `told_by`       [7]                  of a split manual, for each row: −1 where the agent cannot read it, 0 where it
                                         is its own, else 1 + the number of the agent that told it
    ==============  ===================  ===============================================================

Rewards:
    One number for each living agent: −1 if it died, met the distractor, or time ran out; else +1 for each target it
    killed in this step; else −0.02. A librarian (`reading`) gets the mean of the others'.

Ends:
    Won when all targets are dead, no agent has met the distractor and none has died (`death="individual"`: one lives).
    Lost with the first death (`death="individual"`: the last), with any meeting with the distractor, even a
    victorious one, and after `max_cycles`, which is truncation with the reward of a loss.

A step:
    All choose on the old state. The agents move in random order, then the monsters; each arrival is resolved at once.
    An agent that enters a cell takes the weapon that lies there, then fights each monster there. A monster moves, with
    probability 0.6 and an agent within `chase_range`, nearer to the nearest agent, else anywhere. In
    rock-paper-scissors the dragon moves first.

Arguments:
    `stage` or `task` (see `tasks`), `agents`, and the options of `games.RtfmGame`.

Differences from the paper:
    * The weapon held is destroyed when another is taken, as in the released program; the paper drops it
      (`drop_mode="left"`).
    * Monsters sense agents up to a Euclidean distance of 5, as released; the paper names no range (`chase_range=None`).
    * A cell shows two occupants; the released program shows one in training (`occupants=1`).
    * Templates are drawn once an episode; the released program redraws them every step in training (`resample_text`).
    * Plain documents are shuffled too; the released program leaves them in order (`shuffle_manual=False`).
    * Counts of templates are those of the program (12, 10, 10), where the paper says 10, 10, 12.
    * Documents are never cut; the released program cuts the longest fifth of the templated ones at 80 words.
    * Multi-agent RTFM was never released. Ours: agents may share and swap cells; targets have distinct elements (the
      first three, or four without a distractor); a kill is paid to the killer alone; the first death loses.
"""

"""MESSENGER, for one agent and for several: one batched world whose symbols share no word with its manual.

Description:
    An enemy, a message and a goal are on a board of 10 × 10 cells without walls. An agent has to take the message to
    the goal, and to keep clear of the enemy. Which symbol is what changes from game to game; a manual describes each
    entity in words ("the mage runs away from you ; it is the classified report ."), and nothing says which symbol is
    the mage: that has to be found out from how manuals and boards go together. In test games every entity has a role
    that it never had in training. Ids: `messenger` (n = 1, Hanjie et al. 2021) and `ma_messenger` (n ≥ 1, Ding et al.
    2023), with n messages and n goals that look alike.

Text:
    `manual` has a sentence for each entity in random order (three; six in S3, of which one is false). Sentences are
    ours: templates with blanks for entity (3 synonyms), adjective (3) and role word (3); train, val and test share no
    template. There is no goal: it is the same in every game. `manual="reassigned"` is a test of reading: every
    description names another role. `corpus` takes sentences from files, such as those of MESSENGER's authors, instead;
    these need only the sentences of the split and stage (`sentences.needed_cells`), and where they say nothing
    of an entity in a reassigned role, sentences about another movement stand in, else those of another split. With
    `game_id` the manual is no text but three ids: the symbols of enemy, message and goal. `layout=paragraph` writes
    all descriptions into one row, `layout=stream` leaves punctuation out besides; games, and the order of the
    descriptions, are those of `layout=statements`, the default with a row for each.

Actions:
    0 stay, 1 up, 2 down, 3 left, 4 right. Moves off the board are masked and do nothing.

Observations:
    See `EnvSpec`; ids are int16, 0 is padding. 2–13 are entities' symbols, 15 and 16 the agent itself without
    and with a message, 17 and 18 teammates.

    ==============  ===================  ===============================================================
    `grid`          [10, 10, K]          symbols of the occupants of a cell: the agent first, the others in an
                                         order that changes every step; K = min(entities + agents, 6)
    `position`      [2]                  row and column of the agent
    `distance`      [10, 10, 2]          (dx / W, dy / H) to each cell (single games; from `position`)
    `manual`        [3 or 6, L]          the descriptions; shared by the team ([1, 3] with `game_id`; running text:
                                         [1, 3 L or 6 L], L without punctuation for a stream)
    `inventory`     [1]                  16 with a message in hand
    `action_mask`   [5]                  which actions do something
    `teammates`     [n−1, 3]             row, column and inventory of the others, in agent order; absent when n = 1
    ==============  ===================  ===============================================================

Rewards:
    `messenger`: −1 for each hostile contact (enemy, decoy, goal without a message); +0.5 for taking the message; +1 for
    reaching the goal with it; in S1 +1 for the first right contact; −1 when time runs out. `ma_messenger`: +1 for all
    when everyone has done their part, −1 for all when anyone fails or time runs out; +0.2 for an agent that takes a
    message from S3 on.

Ends:
    Won when every agent has done its part; lost with the first hostile contact, and after `max_cycles`, which is
    truncation with the reward of a loss. S1 (and S2 of `ma_messenger`): an agent's part is to reach a message, or in
    one game of five, where all begin with messages, a goal. Otherwise: a message, then a goal. With several agents each
    needs one of its own, which then leaves the board; who has done its part stays where it is and cannot be touched.

A step:
    Entities move, then the agents, then contacts count: enemies first, then agent by agent in a random order. What
    overlaps touches. S2 and S3 of `messenger` and S4 of `ma_messenger`: an entity stands, chases the nearest agent or
    flees from it, half a cell a step, one agent's step being a whole cell; of several directions that bring it nearer
    (or away) it takes one at random, and stays where that leads off the board; entities pass through one another. What
    is shown is the cell of its upper left corner. S2 and S3 of `ma_messenger`: each entity steps over a cell in each
    direction once in eleven times; entities block one another.

Arguments:
    `stage` (see `stages`), `agents`, and the options of `games.MessengerGame`.

Differences from the papers:
    * The sentences are ours; so are the symbols' numbers.
    * One grid of symbols instead of a layer for each entity, whose order the released program shuffles every step.
    * The released program of multi-agent MESSENGER differs from its paper in many ways; we follow the paper.
    * Where entities of other than two agents begin, and S4, are ours.
    * S1's sentences are drawn from those that say that an entity stands and those that are silent together, as in the
      released program; of ours there are as many of each. Those of S2 and S3 of `ma_messenger` are always silent.
"""

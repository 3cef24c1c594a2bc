"""Touchdown: walks through streets by an instruction, as SILG's SymTD (Chen et al. 2019; Zhong et al. 2021, app. E).

Description:
    An agent stands among the streets of a city and sees a panorama in which every patch shows what is there: road,
    building, bus, person, 19 classes in all. An instruction says which way to go. In each step it goes to one of the
    neighbouring places. The panoramas of Google Street View cannot be passed on, so the package has a city of its own,
    drawn by `tools.touchdown`, in the same files; `data=FOLDER` plays those of Touchdown (see `files`).

Text:
    `goal` is the instruction. Those of the package's city are ours: they name what stands at junctions, at the start
    and at the goal, and on which side it is seen when coming along the route. Each class is called by one word
    ("light", "trees"), which has the same id in instructions and panoramas; the words are a list in the folder.

Actions:
    Action j goes in direction j of those there are, up to five, ordered by their column of the panorama. Those that are
    not there are masked, as are ways into a dead end that is not the goal; a masked action does nothing. With
    `manual_stop=True` action 5 stops.

Observations:
    See `EnvSpec`; ids are int16, 0 is padding.

    ===============  ============  =================================================================================
    `grid`           [47, 128, 1]  the panorama as words; its middle column is the heading at which it was taken, or
                                   with `turned=True` the one that the agent looks at; `patch=4` makes it [12, 32, 1]
    `position`       [2]           the row of the horizon, and the column that the agent looks at
    `columns`        [5]           the column of each direction, −1 for none; to stop is where the agent looks
    `goal`           [L]           the instruction; L is that of the city's longest
    `action_mask`    [5]           which directions can be gone
    ===============  ============  =================================================================================

    After a step the agent looks the way it went; at first as the route says.

Rewards:
    (links from the goal before − after) / 10 in a step; 1 in the step that wins, −1 in any other that ends the walk.

Ends:
    Won at the goal, or with `manual_stop` by stopping there; lost by stopping elsewhere; truncated after `max_cycles`.

Splits:
    Files of routes. In the package's city the areas of `train`, `valid` and `test` have no street in common.

Expert:
    `best_actions()` follows the route where the agent is on it, and else the shortest way to the goal, which it knows.

Arguments:
    See `Touchdown`.

Differences from the paper:
    * The city of the package is drawn; its instructions have fewer words (55 on average, Touchdown's 90).
    * A way that SILG's program refuses, into a place with fewer than two neighbours, is masked, unless it is the goal.
    * Words are a list of the city's own, not word pieces.
"""

from magrounding.single.touchdown.layout import CLASSES, SPLITS
from magrounding.single.touchdown.options import Touchdown

__all__ = ["CLASSES", "SPLITS", "Touchdown"]

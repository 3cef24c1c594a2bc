"""Results of the papers, for the reports: {(stage, set): (mean, standard deviation, source)}, win rates.

Deviations are those of the papers; 0 where none is given.
"""

from __future__ import annotations

Published = dict[tuple[str, str], tuple[float, float, str]]

MESSENGER: Published = {
    ("s1", "test"): (0.85, 0.014, "EMMA, quoted in SILG table 2"),
    ("s3", "test"): (0.22, 0.0, "the best of one agent, quoted in EnDi section 5.2"),
}

MA_MESSENGER: Published = {
    ("s1", "test"): (0.79, 0.0, "two agents of EnDi(dis), EnDi section 5.3"),
    ("s2", "test"): (0.52, 0.0, "two agents of EnDi(dis), EnDi section 5.3"),
}

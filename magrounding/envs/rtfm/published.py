"""Results of the papers, for the reports: {(stage, set): (mean, standard deviation, source)}, win rates of 5 seeds."""

from __future__ import annotations

Published = dict[tuple[str, str], tuple[float, float, str]]

RTFM: Published = {
    ("simple_stationary", "train"): (0.84, 0.21, "txt2π, RTFM table 1"),
    ("simple_stationary", "eval"): (0.83, 0.21, "txt2π, RTFM table 1"),
    ("simple_stationary", "eval_10x10"): (0.66, 0.22, "txt2π, RTFM table 1"),
    ("simple", "train"): (0.85, 0.09, "txt2π, RTFM table 2"),
    ("group", "train"): (0.77, 0.10, "txt2π, RTFM table 2"),
    ("nl", "train"): (0.65, 0.17, "txt2π, RTFM table 2"),
    ("nl", "eval"): (0.55, 0.22, "txt2π, RTFM table 3"),
    ("nl", "eval_10x10"): (0.55, 0.27, "txt2π trained on 6×6, RTFM table 3"),
}

MA_RTFM: Published = {
    ("s1", "train"): (0.995, 0.005, "two agents of every model, 99 to 100 %, EnDi section 5.2"),
    ("s5", "train"): (0.59, 0.01, "two agents of EnDi(dis), EnDi table 2"),
    ("s5", "eval"): (0.61, 0.01, "two agents of EnDi(dis), EnDi table 2"),
    ("s5", "eval_new"): (0.56, 0.00, "two agents of EnDi(dis), EnDi table 2"),
    ("s5", "eval_10x10"): (0.62, 0.02, "two agents of EnDi(dis), EnDi table 2"),
}
"""EnDi's table of txt2π in stages S2 to S5 is not available to us."""

MA_RTFM_ABLATIONS: tuple[Published, ...] = (
    {
        ("s5", "train"): (0.38, 0.11, "two agents of EnDi-sup, EnDi table 2"),
        ("s5", "eval"): (0.39, 0.10, "two agents of EnDi-sup, EnDi table 2"),
        ("s5", "eval_new"): (0.36, 0.10, "two agents of EnDi-sup, EnDi table 2"),
        ("s5", "eval_10x10"): (0.44, 0.11, "two agents of EnDi-sup, EnDi table 2"),
    },
    {
        ("s5", "train"): (0.39, 0.02, "two agents of EnDi-reg, EnDi table 2"),
        ("s5", "eval"): (0.38, 0.02, "two agents of EnDi-reg, EnDi table 2"),
        ("s5", "eval_new"): (0.35, 0.02, "two agents of EnDi-reg, EnDi table 2"),
        ("s5", "eval_10x10"): (0.41, 0.00, "two agents of EnDi-reg, EnDi table 2"),
    },
)

"""Results of the papers, for the reports."""

from __future__ import annotations

from magrounding.envs.published import PublishedResult, PublishedResults

MESSENGER: PublishedResults = {
    ("s1", "test"): PublishedResult(0.85, 0.014, "EMMA, quoted in SILG table 2"),
    ("s3", "test"): PublishedResult(0.22, None, "the best of one agent, quoted in EnDi section 5.2"),
}

MA_MESSENGER: PublishedResults = {
    ("s1", "test"): PublishedResult(0.79, None, "two agents of EnDi(dis), EnDi section 5.3"),
    ("s2", "test"): PublishedResult(0.52, None, "two agents of EnDi(dis), EnDi section 5.3"),
}

"""Results of SILG, for the reports."""

from __future__ import annotations

from magrounding.envs.published import PublishedResult, PublishedResults

NETHACK: PublishedResults = {
    ("silg", "test"): PublishedResult(0.254, 0.033, "SIR + local conv, 1e8 frames, SILG table 2; people 78.1 %"),
}
"""Success and its deviation over five seeds (Zhong et al. 2021, table 2)."""

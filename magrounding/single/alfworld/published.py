"""Results of SILG, for the reports: reinforcement learning on ALFRED's scenes, which are not those of this package."""

from __future__ import annotations

from magrounding.envs.published import PublishedResult, PublishedResults

ALFWORLD: PublishedResults = {
    ("", "valid"): PublishedResult(0.236, 0.028, "SIR + state, new instructions on ALFRED's own scenes, SILG table 2"),
    ("", "test"): PublishedResult(0.166, 0.029, "SIR + state, and new layouts, on ALFRED's own scenes, SILG table 2"),
}
"""Success and its deviation over five seeds (Zhong et al. 2021, table 2)."""

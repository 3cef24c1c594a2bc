"""Results of SILG, for the reports: on Touchdown's own city, which is not that of this package."""

from __future__ import annotations

from magrounding.envs.published import PublishedResult, PublishedResults

TOUCHDOWN: PublishedResults = {
    ("", "test"): PublishedResult(0.149, 0.018, "SIR + state on SymTD's streets, SILG table 2; people 61.5 %"),
}
"""Success and its deviation over five seeds (Zhong et al. 2021, table 2)."""

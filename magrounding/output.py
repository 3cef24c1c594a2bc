"""Output of commands and workers on terminals of any alphabet."""

from __future__ import annotations

import sys

JOB_LOG, JOB_PROGRESS = "job.log", "job.json"
"""Files in the folder of a job (`experiment/jobs`) while it runs: what it prints, and how far it is."""


def show_anything() -> None:
    """Show what an output's encoding has no character for as "?" from now on, instead of ending the program.

    An output whose errors somebody has settled otherwise stays as it is.
    """
    for stream in (sys.stdout, sys.stderr):
        if getattr(stream, "errors", None) == "strict" and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]

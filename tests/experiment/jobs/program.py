"""A program given as a word: `python -m tests.experiment.jobs.program CODE …`."""

import sys

exec(sys.argv.pop(1))

"""A run: settings, stages, the curriculum, resuming, evaluation and reports."""

"""Players and teams; evaluating, recording and showing their episodes."""

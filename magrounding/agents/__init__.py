"""Networks and scripted players: one paper a file, each a policy that any learner can train."""

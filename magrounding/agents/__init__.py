"""Networks and scripted players: one paper a file or folder, each a policy that any learner can train."""

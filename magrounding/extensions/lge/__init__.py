"""LGE: DRRN, the agent of many textual actions, and the Guide that selects the relevant ones."""

"""Learning algorithms, and what they learn from: rollouts, returns, replays. Nothing here knows a particular world."""

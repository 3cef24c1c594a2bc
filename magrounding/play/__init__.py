"""Who acts: players, teams, and what is counted, recorded and shown of their games."""

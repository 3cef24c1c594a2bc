"""Read to Fight Monsters, for one agent and for several, and rock-paper-scissors: one batched world."""

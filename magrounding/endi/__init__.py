"""EnDi: agents that divide the entities of a game between them."""

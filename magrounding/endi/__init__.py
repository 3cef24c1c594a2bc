"""EnDi: agents that divide the entities of an episode between them."""

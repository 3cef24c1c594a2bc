"""Language models as players, and games as environments for training them."""

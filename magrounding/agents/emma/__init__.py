"""EMMA (Hanjie et al. 2021) and its ablation: symbols attend to the sentences of a manual."""

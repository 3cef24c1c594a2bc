"""Registers a game, an agent, an algorithm and two presets by name; nothing is imported for it."""

import magrounding as mg

SETS = {"train": {"split": "train"}, "eval": {"split": "eval"}}


def register() -> None:
    """What the entry point in pyproject.toml names."""
    mg.register_env(
        mg.EnvEntry("my_game", "my_game.env:MyGame", evaluation_sets=SETS, multi_agent=True, rules_text="manual")
    )
    mg.register_agent(mg.AgentEntry("healer", "my_game.agent:Healer"))
    mg.register_algorithm(mg.AlgorithmEntry("my_reinforce", "my_game.reinforce:ReinforceConfig"))
    mg.register_preset(mg.PresetEntry("demo", "my_game", "my_game.presets:BY_PPO"))
    mg.register_preset(mg.PresetEntry("reinforce", "my_game", "my_game.presets:BY_REINFORCE"))

"""Registers a game, an agent, an algorithm and two presets by name; nothing is imported for it."""

import magrounding as mg


def register():
    """Pyproject.toml names this function."""
    sets = {split: {"split": split} for split in ("train", "eval")}
    game = mg.EnvEntry("my_game", "my_game.env:MyGame", evaluation_sets=sets, multi_agent=True, rules_text="manual")
    mg.register_env(game)
    mg.register_agent(mg.AgentEntry("healer", "my_game.agent:Healer"))
    mg.register_algorithm(mg.AlgorithmEntry("my_reinforce", "my_game.reinforce:ReinforceConfig"))
    mg.register_preset(mg.PresetEntry("demo", "my_game", "my_game.presets:DEMO"))
    mg.register_preset(mg.PresetEntry("reinforce", "my_game", "my_game.presets:REINFORCE"))

"""Registers a game, an agent, an algorithm and two presets by name; nothing is imported for it."""

import magrounding as mg


def register():
    """Pyproject.toml names this function."""
    plan = mg.EvaluationPlan(mg.by_split(("train", "eval")), rules_text="manual")
    mg.register_env(mg.EnvEntry("my_game", "my_game.env:MyGame", multi_agent=True, evaluation=plan))
    mg.register_agent(mg.AgentEntry("healer", "my_game.agent:Healer"))
    mg.register_algorithm(mg.AlgorithmEntry("my_reinforce", "my_game.reinforce:ReinforceConfig"))
    mg.register_preset(mg.PresetEntry("demo", "my_game", "my_game.presets:DEMO"))
    mg.register_preset(mg.PresetEntry("reinforce", "my_game", "my_game.presets:REINFORCE"))

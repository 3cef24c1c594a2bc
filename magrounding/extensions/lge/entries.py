"""The agents, algorithms, presets and commands of DRRN and LGE, by name."""

from magrounding.registry import (
    COMMANDS,
    AgentEntry,
    AlgorithmEntry,
    CommandEntry,
    PresetEntry,
    register_agent,
    register_algorithm,
    register_preset,
)

_DRRN = "magrounding.agents.drrn.network:Drrn"
AGENTS = (
    AgentEntry("drrn", _DRRN, algorithm="drrn"),
    AgentEntry("drrn_bow", _DRRN, {"reader": "bag"}, built_on="drrn", algorithm="drrn"),
    AgentEntry("drrn_bc", _DRRN, built_on="drrn"),
    AgentEntry("lge", "magrounding.agents.lge:Lge", built_on="drrn", algorithm="lge"),
)
ALGORITHMS = (
    AlgorithmEntry("lge", "magrounding.training.lge:LgeLearnerConfig", own_agents=True),
    AlgorithmEntry("drrn", "magrounding.training.drrn:DrrnLearnerConfig", own_agents=True),
)
_PRESETS = {
    "paper": "scienceworld:PAPER_SCIENCEWORLD",
    "quick": "scienceworld:QUICK_SCIENCEWORLD",
    "quick_lge": "lge:QUICK_LGE",
    "quick_lge_inc": "lge:QUICK_LGE_INC",
    "quick_lge_released": "lge:QUICK_LGE_RELEASED",
    "quick_gold": "lge:QUICK_GOLD",
    "paper_lge": "lge:PAPER_LGE",
    "paper_lge_inc": "lge:PAPER_LGE_INC",
    "paper_lge_released": "lge:PAPER_LGE_RELEASED",
}
_COMMANDS = {
    "guide": ("Train LGE's Guide, which selects the relevant ones among many valid actions.", "replay"),
    "pieces": ("Train a vocabulary of word pieces on an environment's texts.", "publish"),
}


def register() -> None:
    """Enter them."""
    for agent in AGENTS:
        register_agent(agent)
    for algorithm in ALGORITHMS:
        register_algorithm(algorithm)
    for name, place in _PRESETS.items():
        register_preset(PresetEntry(name, "scienceworld", f"magrounding.experiment.presets.{place}"))
    for name, (about, behind) in _COMMANDS.items():
        COMMANDS[name] = CommandEntry(name, about, f"magrounding.cli.{name}", behind)

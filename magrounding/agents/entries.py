"""The agents of this package."""

from magrounding.registry import AgentEntry

_TXT2PI = "magrounding.agents.txt2pi:make_txt2pi"
_SIR = "magrounding.agents.sir.network:Sir"
_QMIX_RELREAD = "magrounding.agents.qmix:QmixRelread"
_SIR_PARTS = ("state", "local_conv", "entity_attn", "bert")

AGENTS = (
    AgentEntry("relread", "magrounding.agents.relread.network:Relread"),
    AgentEntry("viewread", "magrounding.agents.viewread:ViewRead"),
    AgentEntry("panoread", "magrounding.agents.panoread:PanoRead"),
    AgentEntry("choiceread", "magrounding.agents.choiceread:ChoiceRead"),
    AgentEntry("fieldread", "magrounding.agents.fieldread:FieldRead"),
    AgentEntry("babyai_small", "magrounding.agents.babyai:BabyAINetwork"),
    AgentEntry("babyai_large", "magrounding.agents.babyai:BabyAILarge"),
    AgentEntry("txt2pi", _TXT2PI),
    AgentEntry("txt2pi_no_task_attn", _TXT2PI, {"task_attention": False}),
    AgentEntry("txt2pi_no_vis_attn", _TXT2PI, {"visual_attention": False}),
    AgentEntry("txt2pi_no_text_mod", _TXT2PI, {"text_modulation": False}),
    AgentEntry("film", "magrounding.agents.baselines:Film"),
    AgentEntry("conv", "magrounding.agents.baselines:Conv"),
    AgentEntry("sir", _SIR),
    *(AgentEntry(f"sir_{part}", _SIR, {part: True}, built_on="sir") for part in _SIR_PARTS),
    AgentEntry("sir_all", _SIR, dict.fromkeys(_SIR_PARTS, True), built_on="sir"),
    AgentEntry("emma", "magrounding.agents.emma.network:Emma"),
    AgentEntry(
        "emma_game_id", "magrounding.agents.emma.network:GameId", env_options={"game_id": True}, built_on="emma"
    ),
    AgentEntry("qmix", "magrounding.agents.qmix:QmixAgent", algorithm="qmix"),
    AgentEntry("qmix_relread", _QMIX_RELREAD, built_on="relread", algorithm="qmix"),
    AgentEntry("qmix_blind", _QMIX_RELREAD, {"blind": True}, built_on="relread", algorithm="qmix"),
)

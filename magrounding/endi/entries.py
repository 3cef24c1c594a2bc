"""EnDi's agents: each variant on each grounding module."""

from __future__ import annotations

from magrounding.registry import AgentEntry

_ENDI = {
    "endi_num": {"regularizer": "num"},
    "endi_dis": {"regularizer": "dis"},
    "endi_sup": {"regularizer": "dis", "modelling": False},
    "endi_reg": {"regularizer": "none"},
}


def _endi(id: str, grounding: str) -> AgentEntry:
    """EnDi on a grounding module; on txt2π, the default and the paper's for RTFM, it is called by its bare name."""
    policy, options = "magrounding.endi.agent:make_endi", _ENDI[id]
    if grounding == "txt2pi":
        return AgentEntry(id, policy, options, built_on=grounding)
    part = {"emma": "emma", "relread": "reader"}[grounding]
    return AgentEntry(f"{id}_{grounding}", policy, {**options, "grounding": grounding}, built_on=grounding, part=part)


AGENTS = tuple(_endi(id, grounding) for grounding in ("txt2pi", "emma", "relread") for id in _ENDI)

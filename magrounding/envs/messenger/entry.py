"""The environments of MESSENGER."""

from __future__ import annotations

from magrounding.envs.messenger.layouts import LAYOUTS
from magrounding.registry import EnvEntry

_SETS = {name: {"split": name} for name in ("train", "val", "test")}

ENVS = (
    EnvEntry(
        id="messenger",
        game="magrounding.envs.messenger.games:Messenger",
        stage_option="stage",
        stages=("s1", "s2", "s3"),
        curriculum=("s1", "s2", "s3"),
        evaluation_sets={**_SETS, "test_seen_dynamics": {"split": "test_seen_dynamics"}},
        rules_text="manual",
        oracle="magrounding.envs.messenger.oracle:Oracle",
        published="magrounding.envs.messenger.published:MESSENGER",
        reading_set="test",
        layouts=LAYOUTS,
    ),
    EnvEntry(
        id="ma_messenger",
        game="magrounding.envs.messenger.games:MaMessenger",
        stage_option="stage",
        stages=("s1", "s2", "s3", "s4"),
        curriculum=("s1", "s2", "s3", "s4"),
        evaluation_sets=_SETS,
        rules_text="manual",
        oracle="magrounding.envs.messenger.oracle:Oracle",
        published="magrounding.envs.messenger.published:MA_MESSENGER",
        multi_agent=True,
        reading_set="test",
        layouts=LAYOUTS,
    ),
)

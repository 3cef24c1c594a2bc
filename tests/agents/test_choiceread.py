"""choiceread: choices matched with the task and with what was said before, in a tiny world of texts."""

from dataclasses import replace

import torch

from magrounding.agents.building import make_policy
from magrounding.spec import CHOICES, EPISODE, Text
from tests.agents.test_policies import played
from tests.many_choices import SPEC as MANY
from tests.tiny_rooms import SPEC

SMALL = {"embedding": 8, "states": 16, "role": 6, "hidden": 12}


@torch.no_grad()
def test_texts_without_a_word_are_read():
    policy = make_policy("choiceread", SPEC, **SMALL)
    nothing = {name: torch.zeros(2, *SPEC[name].shape, dtype=torch.int16) for name in ("task", "said")}
    assert not policy.encode("task", nothing)["roles"].any()
    assert not policy.encode("now", nothing)["mask"].any()


@torch.no_grad()
def test_where_nothing_is_offered_there_is_a_value_all_the_same():
    """Games that offer nothing may be all that is on show; beside others that do they are worth the same."""
    policy, trajectory = played("choiceread")
    batch = policy.encode_batch(trajectory.games().inputs)
    offered = batch.observation["action_mask"]
    masks = torch.zeros_like(offered), offered.index_fill(1, torch.tensor(0), 0)
    every, one = (policy(batch._replace(observation={**batch.observation, "action_mask": mask})) for mask in masks)
    torch.testing.assert_close(every.value[:, 0], one.value[:, 0])
    assert (every.logits == torch.finfo(torch.float32).min).all()


def test_a_history_is_not_read_and_every_other_text_is():
    more = (Text("history", (3, 4), 0, 9), Text("rules", (2, 5), 0, 9, shared=True, lifetime=EPISODE))
    policy = make_policy("choiceread", replace(SPEC, fields=(*SPEC.fields, *more)), **SMALL)
    assert policy.reads == {
        "task": ("task", "rules"),
        "now": ("task", "rules", "said"),
        CHOICES: (CHOICES,),
    }
    assert make_policy("choiceread", MANY, **SMALL).reads["now"] == ("task", "observation")

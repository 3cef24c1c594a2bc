"""What is told of divisions and foresight, counted again step by step; and an oracle who gives each its own target."""

import numpy as np
import pytest
import torch

import magrounding as mg
from magrounding.agents.document_policy import Inputs
from magrounding.teams.evaluate import evaluate
from magrounding.teams.team import Team
from tests.endi.games import network

OPTIONS = {"stage": "s3", "agents": 2, "max_cycles": 6}
GAMES = 5


class Recounting(Team):
    """Counts afresh from its networks, in the games that it is asked to play: row b is over at its first end."""

    def act(self, obs, memory, info=None, greedy=True, *, rows=None, explain=False):
        actions, memory = super().act(obs, memory, info, greedy, rows=rows, explain=explain)
        masks, right = [], []
        for i, policy in enumerate(self.policies):
            with torch.no_grad():
                seen = {each.name: torch.from_numpy(obs[each.name][rows, i]) for each in self.spec.own_fields}
                text = policy.encode_text(*(torch.from_numpy(obs[name][rows]) for name in ("manual", "goal")))
                index = torch.arange(len(rows))
                division, looked = policy.respond(Inputs(seen, text, index)).seen
                masks.append(division.taken(8, 8).flatten(1).numpy())
                guess = policy.predict_others(Inputs(seen, text, index), looked, division.others).argmax(2)[:, 0]
            right.append(guess.numpy() == actions[rows, 1 - i])
        for mine, other, hit in zip(masks, masks[::-1], right, strict=True):
            for own, theirs, known in zip(mine, other, hit, strict=True):
                self.tally["modelling_accuracy"].append(known)
                if (own >= 0).any():
                    self.tally["mask_coverage"].append((own == 1).sum() / (own >= 0).sum())
                    self.tally["mask_conflicts"].append(((own == 1) & (theirs == 1)).sum() / (own >= 0).sum())
        return actions, memory


@pytest.mark.parametrize("agent", ["endi_dis", "endi_dis_relread"])
def test_masks_and_foresight_are_counted_as_they_are(agent):
    spec = mg.make_vec("ma_rtfm", 1, **OPTIONS).spec
    policies = [network(agent, seed=i, modelling=True) for i in range(2)]
    if agent == "endi_dis_relread":  # it would begin by taking all, where the likelier of take and leave is chosen
        for policy in policies:
            torch.nn.init.zeros_(policy.divider[-1].bias)
    team = Recounting(policies, spec)
    team.tally = {"mask_coverage": [], "mask_conflicts": [], "modelling_accuracy": []}
    found = evaluate(team, "ma_rtfm", OPTIONS, GAMES, greedy=False, diagnose=True).summary()
    assert len(team.tally["modelling_accuracy"]) > 4 * GAMES
    for name, values in team.tally.items():
        assert found[name] == pytest.approx(np.mean(values))
    assert 0 < found["mask_coverage"] < 1
    assert 0 < found["modelling_accuracy"] < 1


def test_a_network_that_models_nobody_says_nothing_of_others():
    spec = mg.make_vec("ma_rtfm", 1, **OPTIONS).spec
    sup = [network("endi_dis_relread", seed=i, modelling=False) for i in range(2)]
    found = evaluate(Team(sup, spec), "ma_rtfm", OPTIONS, GAMES, diagnose=True).summary()
    assert "modelling_accuracy" not in found
    assert "mask_coverage" in found
    mixed = Team([sup[0], network("endi_dis_relread", seed=1)], spec)
    found = evaluate(mixed, "ma_rtfm", OPTIONS, GAMES, diagnose=True).summary()
    assert "modelling_accuracy" not in found  # nothing is said of a team in which only one guesses
    assert "mask_coverage" in found

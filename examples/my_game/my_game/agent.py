"""The agent: what does the manual say of the patient?"""

from dataclasses import dataclass

from torch import nn

from magrounding.agents.policy import Accepts, Policy, PolicyOutput, mask_logits


@dataclass(frozen=True)
class Options:
    """The width of a word."""

    width: int = 32


class Healer(Policy):
    """Linear attention from the patient to the statements of the manual."""

    accepts = Accepts(grid=False, fields=("manual", "patient", "action_mask"))

    def __init__(self, spec, **options):
        super().__init__(spec)
        self.config, self.reads = Options(**options), {"manual": ("manual",)}
        width = self.config.width
        self.words = nn.Embedding(spec.vocabulary_size, width, padding_idx=0)
        self.about, self.says = nn.Linear(width, width), nn.Linear(width, width)
        self.act, self.value = nn.Linear(width, spec.num_actions), nn.Linear(width, 1)

    def encode(self, name, ids):
        statements = self.words(ids["manual"].int()).mean(2)  # [U, S, D] of [U, S, L]
        return {"about": self.about(statements), "says": self.says(statements)}

    def forward(self, batch):
        manual, seen = batch.texts["manual"], batch.observation
        about, says = (manual.encoding[name][manual.index] for name in ("about", "says"))  # [T, B, S, D]
        fits = about @ self.words(seen["patient"].int()).mT  # [T, B, S, 1]
        read = (fits * says).mean(2)  # [T, B, D]
        return PolicyOutput(mask_logits(self.act(read), seen["action_mask"]), self.value(read).squeeze(-1))

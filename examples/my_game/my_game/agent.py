"""The agent: what does the manual say of the patient?"""

from torch import nn

from magrounding.agents.policy import Accepts, Policy, PolicyOutput, mask_logits


class Healer(Policy):
    """Linear attention from the patient to the statements of the manual."""

    accepts = Accepts(grid=False, fields=("manual", "patient", "action_mask"))

    def __init__(self, spec, width=32):
        super().__init__(spec)
        self.words = nn.Embedding(spec.vocabulary_size, width, padding_idx=0)
        self.says, self.act, self.value = (nn.Linear(width, size) for size in (width, spec.num_actions, 1))

    def encode(self, name, ids):
        return {"statements": self.words(ids["manual"].int()).mean(2)}  # [U, S, D] of [U, S, L]

    def forward(self, batch):
        document, seen = batch.texts["document"], batch.observation
        statements = document.encoding["statements"][document.index]  # [T, B, S, D]
        fits = statements @ self.words(seen["patient"].int()).mT  # [T, B, S, 1]
        read = (fits * self.says(statements)).mean(2)  # [T, B, D]
        return PolicyOutput(mask_logits(self.act(read), seen["action_mask"]), self.value(read).squeeze(-1))

"""relread as an agent network of QMIX: a Q-network that reads. Neither paper has it."""

from __future__ import annotations

from torch import Tensor, nn

from magrounding.agents.document_policy import Inputs
from magrounding.agents.policy import ATTENTION, Batch, PolicyOutput, TextEncoding, mask_logits
from magrounding.agents.qmix.network import QNetwork
from magrounding.agents.relread.network import Relread, RelreadConfig
from magrounding.agents.remapping import within
from magrounding.errors import ConfigurationError
from magrounding.spec import EnvSpec


class QmixRelread(QNetwork):
    """Action values by the body of relread, without memory.

    Its two heads become those of a dueling network (Wang et al. 2016, eq. 9): Q = V + A − mean A.

    Raises:
        ConfigurationError: an environment that it is not made for, or the option motion, which takes a memory.
    """

    defaults = RelreadConfig()
    looks_at = ("grid", "position", "inventory", "action_mask", "teammates")
    accepts = Relread.accepts

    def __init__(self, spec: EnvSpec, config: RelreadConfig) -> None:
        super().__init__(spec)
        if config.motion:
            raise ConfigurationError("qmix_relread remembers nothing, so it sees no motion: set its option motion to 0")
        self.config = config = config.for_world(spec)
        self.reader = Relread(spec, config)
        self.depends_on_names = self.reader.depends_on_names
        self.word_rows = within("reader", self.reader.word_rows)
        self.agent = nn.Linear(spec.num_agents, config.hidden, bias=False)

    def encode_text(self, manual: Tensor, goal: Tensor) -> TextEncoding:
        return self.reader.encode_text(manual, goal)

    def relate_words(self, text: TextEncoding, subjects: Tensor, names: Tensor) -> Tensor:
        return self.reader.relate_words(text, subjects, names)

    def forward(self, batch: Batch) -> PolicyOutput:
        """Act, see `QNetwork.forward`; `aux` has ATTENTION."""
        output, shape = super().forward(batch), batch.restarts.shape
        seen = {name: batch.observation[name].flatten(0, 1) for name in self.looks_at if name in batch.observation}
        read = batch.texts["document"]

        def attention() -> Tensor:
            things = self.reader.find(seen)
            return self.reader.attention(things, read.encoding, read.index.flatten()).unflatten(0, shape)

        return output._replace(aux={ATTENTION: attention})

    def evaluate(
        self, inputs: Inputs, who: Tensor, last_action: Tensor, hidden: Tensor, real: Tensor
    ) -> tuple[Tensor, Tensor]:
        observation, text, document = inputs
        things = self.reader.find(observation)
        features = self.reader.relate(things, text, document)
        advantage, value = self.reader.decide(observation, things, features, self.agent(who))
        q = value.unsqueeze(1) + advantage - advantage.mean(1, keepdim=True)
        return mask_logits(q.float(), observation["action_mask"]), hidden

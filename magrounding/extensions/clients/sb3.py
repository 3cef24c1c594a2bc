"""WordExtractor: a features extractor that reads, for stable-baselines3 and sb3-contrib."""

from __future__ import annotations

from gymnasium import spaces
from torch import Tensor

from magrounding.errors import needed
from magrounding.extensions.clients.word_reader import WordReader
from magrounding.spec import EnvSpec

with needed("WordExtractor", "clients"):
    from stable_baselines3.common.torch_layers import BaseFeaturesExtractor


class WordExtractor(BaseFeaturesExtractor):
    """A features extractor for Dict observations: word ids are embedded and matched, see `WordReader`.

    SB3's own flattens every key, and a word's id becomes a magnitude. For "MultiInputPolicy" of PPO, A2C, DQN and
    MaskablePPO: `policy_kwargs={"features_extractor_class": WordExtractor, "features_extractor_kwargs": {"spec":
    mg.ENVS["rtfm"].describe()}}`, with the options that the env has.

    Arguments and errors are those of `WordReader`; SB3 gives the observation space itself.
    """

    def __init__(
        self, observation_space: spaces.Space, spec: EnvSpec, width: int = 128, word: int = 16, features: int = 16
    ) -> None:
        super().__init__(observation_space, width)
        self.reader = WordReader(spec, observation_space, width, word, features)

    def forward(self, observations: dict[str, Tensor]) -> Tensor:
        return self.reader(observations)

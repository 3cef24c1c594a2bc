"""Player: one policy in B episodes: encoded texts, memory, choice of actions. Teams and rollouts act through it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from magrounding.agents.own_defaults import bfloat16, own_defaults
from magrounding.agents.policy import (
    MARKS,
    Batch,
    Pass,
    Policy,
    PolicyOutput,
    Reading,
    TextEncoding,
    beside,
    evaluating,
)
from magrounding.agents.transfer import download, upload
from magrounding.brief import brief
from magrounding.errors import Diverged
from magrounding.spec import EPISODE, EnvSpec, Text
from magrounding.texts import flat_choices, gather_texts, text_keys
from magrounding.vector import Observation

KEPT = 20_000
"""Number of kept texts beyond which all are dropped, so that the cache does not fill the memory."""
_UNREAD = -1
"""Index of a text that is not encoded yet."""


class Shown(NamedTuple):
    """One agent's observations in B episodes.

    Attributes:
        observation: [B, …] of each field that is no text.
        texts: [B, …] of each text field.
        document: [B] int64 key of the episode's shared texts, or None where it is not known.
    """

    __repr__ = brief

    observation: Observation
    texts: Observation
    document: np.ndarray | None


def shown_to(agent: int, observation: Mapping[str, np.ndarray], spec: EnvSpec, document: np.ndarray | None) -> Shown:
    """Return one agent's part of a vector env's observation."""
    own = {f.name: observation[f.name] if f.shared else observation[f.name][:, agent] for f in spec.fields}
    texts = {text.name: own.pop(text.name) for text in spec.texts}
    return Shown(own, texts, document)


class Choice(NamedTuple):
    """Actions of R episodes.

    Attributes:
        action: [R] int64.
        logits: [R, A] float32.
        value: [R] float32.
        record: [R, …] by name, which the network needs again to re-evaluate the step.
    """

    __repr__ = brief

    action: np.ndarray
    logits: np.ndarray
    value: np.ndarray
    record: dict[str, np.ndarray]


class Player:
    """One policy in B episodes; its network stays where it is (CPU or GPU).

    Args:
        num_envs: B.
        generator: CPU random numbers of the sampled actions; None plays with torch's own.
        bf16: compute in bfloat16 where autocast does.

    Attributes:
        memory: [B, …] of a policy that remembers.
        aux: [R, …] by name, the network's reports on the last choice.
        last_action: [B] int64, of the step before; a caller that did something else sets it.
    """

    @own_defaults()
    def __init__(
        self,
        policy: Policy,
        spec: EnvSpec,
        num_envs: int,
        generator: torch.Generator | None = None,
        *,
        bf16: bool = False,
    ) -> None:
        self.policy, self.spec, self.num_envs = policy, spec, num_envs
        self.generator, self.bf16 = generator, bf16
        self.device = next(policy.parameters()).device
        memory = policy.initial_memory(num_envs)
        self.memory = None if memory is None else memory.to(self.device)
        self.aux: dict[str, np.ndarray] = {}
        self.last_action = np.full(num_envs, -1, np.int64)
        self._texts = {
            name: EncodedTexts(policy, name, keep=_changes(spec, names)) for name, names in policy.reads.items()
        }

    def share_texts(self, other: Player) -> None:
        """Read together with another player that has the same network and is shown the same texts."""
        self._texts = other._texts

    def forget_texts(self) -> None:
        """Read every text afresh: the weights have changed."""
        for texts in self._texts.values():
            texts.forget()

    def choose(
        self,
        shown: Shown,
        restarts: np.ndarray,
        *,
        rows: np.ndarray | None = None,
        greedy: bool = False,
        explain: bool = False,
        learning: bool = False,
    ) -> Choice:
        """Choose the next action of each episode.

        Args:
            shown: the agent's observations.
            restarts: [B] bool, the episodes that have just begun.
            rows: [R] the episodes to play; all by default.
            greedy: take the most likely action instead of drawing one.
            explain: let the network also compute the costly entries of `aux`.
            learning: act in the mode in which the network learns, as its learner's experience has to be; otherwise in
                evaluation mode, whatever mode it is in.

        Raises:
            Diverged: the network's probabilities are not finite.
        """
        _, output = look([self], [shown], restarts, [{}], rows, learning=learning)
        return take([self], output, rows, greedy=greedy, explain=explain)[0]

    def take(self, found: Mapping[Any, np.ndarray], greedy: bool, rows: np.ndarray | None) -> Choice:
        """Choose by what the network has found for this player, [R, …]."""
        logits = torch.from_numpy(found["", "logits"])
        if greedy:
            action = logits.argmax(-1)
        else:
            chances = logits.softmax(-1)
            try:
                action = torch.multinomial(chances, 1, generator=self.generator).squeeze(-1)
            except RuntimeError:  # looking for it in every step would take time
                if chances.isfinite().all():
                    raise
                raise Diverged("the network's probabilities of actions are not finite") from None
        chosen = action.numpy()
        self.last_action[slice(None) if rows is None else rows] = chosen
        self.aux, record = (
            {name: each for (of, name), each in found.items() if of == kind} for kind in ("aux", "record")
        )
        return Choice(chosen, found["", "logits"], found["", "value"], record)

    def batch(
        self,
        shown: Shown,
        restarts: np.ndarray,
        *,
        rows: np.ndarray | None = None,
        record: Mapping[str, np.ndarray] | None = None,
    ) -> Batch:
        """Return the policy's input for one step of R episodes; arguments as in `choose` and `look`."""
        last = np.where(restarts, -1, self.last_action)
        kinds = {"": {"restarts": restarts, "last": last}, "seen": shown.observation, "record": record or {}}
        arrays = {(kind, name): array for kind, own in kinds.items() for name, array in own.items()}
        chosen = arrays if rows is None else {name: array[rows] for name, array in arrays.items()}
        shows = {("text", name): index for name, index in self._read(shown, rows).items()}
        sent = {name: each.unsqueeze(0) for name, each in upload({**chosen, **shows}, self.device).items()}
        memory = self.memory
        return Batch(
            {name: sent["seen", name] for name in shown.observation},
            {name: Reading(texts.encoding, sent["text", name]) for name, texts in self._texts.items()},
            memory if rows is None or memory is None else memory[self.index(rows)],
            sent["", "restarts"],
            sent["", "last"],
            {name: sent["record", name] for name in record or {}},
        )

    def _read(self, shown: Shown, rows: np.ndarray | None) -> dict[str, np.ndarray]:
        """Encode what is new, and return the index [R, …] of the text of each kind that each episode shows."""
        document = shown.document if rows is None or shown.document is None else shown.document[rows]
        shows = {}
        for name, texts in self._texts.items():
            ids = gather_texts(shown.texts, texts.fields, len(self.last_action), rows)
            keys = text_keys(ids, texts.fields, self.spec, document)
            shows[name] = texts.read(keys, flat_choices(ids), rows)
        return shows

    def index(self, rows: np.ndarray) -> Tensor:  # [R] int64, where the network is
        return upload({"": rows}, self.device)[""]


@own_defaults()
def look(
    players: Sequence[Player],
    shown: Sequence[Shown],
    restarts: np.ndarray,
    records: Sequence[Mapping[str, np.ndarray]],
    rows: np.ndarray | None = None,
    *,
    learning: bool = False,
    gradients: bool = False,
) -> Pass:
    """What a network sees and finds for one player, or for several that `share_texts`, and no memory, in one pass.

    Until a pass with `gradients` is dropped, no text may be forgotten. `records` are the random numbers [B, …] of
    `Policy.draw_record`, in training. Other arguments are those of `Player.choose`.
    """
    first = players[0]
    mode = nullcontext() if learning else evaluating(first.policy)
    with mode, bfloat16(first.device, first.bf16), torch.set_grad_enabled(gradients):
        batches = [
            player.batch(own, restarts, rows=rows, record=record)
            for player, own, record in zip(players, shown, records, strict=True)
        ]
        with torch.autocast(first.device.type, enabled=False):  # autocast cannot join float64
            batch = batches[0] if len(batches) == 1 else beside(batches)
        return batch, first.policy(batch)


@own_defaults()
@torch.no_grad()
def take(
    players: Sequence[Player],
    output: PolicyOutput,
    rows: np.ndarray | None = None,
    *,
    greedy: bool = False,
    explain: bool = False,
) -> list[Choice]:
    """Choose for each player by what `look` has found; arguments are those of `Player.choose`."""
    first = players[0]
    if output.memory is not None:
        after, before = output.memory[0], first.memory
        first.memory = after if rows is None or before is None else before.index_copy(0, first.index(rows), after)
    with bfloat16(first.device, first.bf16):
        aux = {name: compute() for name, compute in output.aux.items() if explain or name == MARKS}
    kinds = {"": {"logits": output.logits.float(), "value": output.value.float()}, "aux": aux, "record": output.record}
    fetched = download({(kind, name): each[0].detach() for kind, own in kinds.items() for name, each in own.items()})
    parts = [np.split(each, len(players)) for each in fetched.values()]
    return [
        player.take(dict(zip(fetched, own, strict=True)), greedy, rows)
        for player, own in zip(players, zip(*parts, strict=True), strict=True)
    ]


def _changes(spec: EnvSpec, names: tuple[str, ...]) -> bool:
    """Return whether any of some text fields may change within an episode."""
    fields = (spec[name] for name in names if name in spec)
    return any(isinstance(each, Text) and each.lifetime != EPISODE for each in fields)


class EncodedTexts:
    """The encodings of one kind of text in a batch of episodes.

    Args:
        policy: the network that reads. Call `forget` when its weights change.
        name: key of `policy.reads`, which names the fields.
        keep: keep texts that no game shows any longer, as they may come back before the weights change. Without it
            their slots are used again, so there are never more encodings than texts shown in all games.

    Attributes:
        encoding: of all texts that are kept, all as long as the longest, padded with zeros (False in a mask).
        encoded: number of texts encoded so far.
    """

    def __init__(self, policy: Policy, name: str, *, keep: bool) -> None:
        self.policy, self.name, self.keep = policy, name, keep
        self.fields = policy.reads[name]
        self.encoded = 0
        self._device = next(policy.parameters()).device
        self.forget()

    def forget(self) -> None:
        self.encoding: TextEncoding = {}
        self._slots: dict[int, int] = {}
        self._keys = self._index = np.zeros(0, np.int64)  # key and slot of the text that each game shows, [B, …]

    def read(self, keys: np.ndarray, texts: Mapping[str, np.ndarray], rows: np.ndarray | None = None) -> np.ndarray:
        """Encode new texts and return the index [R, …] int64 of each text in `encoding`.

        Args:
            keys: [R, …] int64, equal keys mean equal texts.
            texts: [R · …, …] ids of each of `fields`.
            rows: [R] games that show them, ascending; the texts of other games have not changed. None: all games.
        """
        some = slice(None) if rows is None else rows
        self._make_room(keys, rows)
        index = self._index[some].copy()
        changed = ((self._keys[some] != keys) | (index == _UNREAD)).ravel().nonzero()[0]
        if not len(changed):
            return index
        if self.keep and len(self._slots) > KEPT:
            self.forget()
            return self.read(keys, texts, rows)
        self._keys[some] = keys
        different, first, place = np.unique(keys.ravel()[changed], return_index=True, return_inverse=True)
        shown = different.tolist()
        places = sorted(zip(changed[first].tolist(), shown, strict=True))
        new = {key: row for row, key in places if key not in self._slots}
        if new:
            self._place(new, texts)
        index.ravel()[changed] = np.array([self._slots[key] for key in shown])[place]
        self._index[some] = index
        return index

    def _make_room(self, keys: np.ndarray, rows: np.ndarray | None) -> None:
        """Resize for the keys of some games; games that were not read yet get the keys of the first of these."""
        before, index = self._keys, self._index
        games = len(keys) if rows is None else max(len(before), int(rows.max(initial=-1)) + 1)
        if before.shape == (games, *keys.shape[1:]):
            return
        self._keys = np.broadcast_to(keys[:1], (games, *keys.shape[1:])).copy()
        self._index = np.full(self._keys.shape, _UNREAD)
        if rows is not None and before.shape[1:] == keys.shape[1:]:
            self._keys[: len(before)], self._index[: len(before)] = before, index

    def _place(self, new: dict[int, int], texts: Mapping[str, np.ndarray]) -> None:
        """Encode new texts, given the row of each key in `texts`, and give each a slot."""
        if not self.keep and not torch.is_grad_enabled():  # a graph holds the others as they are
            for key in self._slots.keys() - set(self._keys.ravel().tolist()):
                del self._slots[key]
        rows, used = list(new.values()), set(self._slots.values())
        capacity = len(next(iter(self.encoding.values()), ())) if used else 0
        free = [slot for slot in range(capacity) if slot not in used]
        places = [*free[: len(rows)], *range(capacity, capacity + len(rows) - len(free))]
        ids = {("ids", name): texts[name][rows] for name in self.fields}
        sent: dict[Any, Tensor] = upload({**ids, "places": np.array(places)}, self._device)
        encoded = self.policy.encode(self.name, {name: sent["ids", name] for name in self.fields})
        self.encoded += len(rows)
        size = max(capacity, places[-1] + 1)
        self.encoding = overwrite(self.encoding, sent["places"], encoded, size) if used else dict(encoded)
        self._slots.update(zip(new, places, strict=True))


def overwrite(kept: TextEncoding, rows: Tensor, new: TextEncoding, size: int) -> TextEncoding:
    """Write the texts of `new` [R, …] to `rows` [R] int64 of `kept`, in place where they fit.

    Where a new text is longer than all that were kept, or `size` texts do not fit, the kept ones are padded with zeros
    first: use the returned encoding.
    """
    larger = {name: _pad_to(tensor, (size, *new[name].shape[1:])) for name, tensor in kept.items()}
    return {
        name: tensor.index_copy_(0, rows, _pad_to(new[name], (0, *tensor.shape[1:]))) for name, tensor in larger.items()
    }


def _pad_to(tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The tensor with zeros behind each axis that is shorter than in `shape`."""
    missing = [max(target - size, 0) for target, size in zip(shape, tensor.shape, strict=True)]
    return F.pad(tensor, [side for size in reversed(missing) for side in (0, size)]) if any(missing) else tensor

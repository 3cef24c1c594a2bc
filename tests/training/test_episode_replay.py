"""Whole episodes go in step by step and come out as they were."""

import numpy as np
import pytest

from magrounding.training.qmix import EpisodeReplay

B, LONGEST = 3, 5


class Stream:
    """Episodes of 1 to LONGEST steps in B games; a step tells game, episode and place in it."""

    def __init__(self):
        self.rng = np.random.default_rng(0)
        self.episode, self.step = np.zeros(B, np.int64), np.zeros(B, np.int64)
        self.length = self.rng.integers(1, LONGEST + 1, B)
        self.lengths = {}

    def play(self, replay, steps):
        for _ in range(steps):
            done = self.step + 1 == self.length
            cut = done & (self.length == LONGEST)
            tag = np.stack((np.arange(B), self.episode, self.step), 1).astype(np.int16)
            reward = (100 * self.episode + self.step).astype(np.float32)
            replay.add({"tag": tag, "grid": tag[:, None] + 7}, tag[:, :2].astype(np.int64), reward, done, cut)
            self.step += 1
            for b in np.flatnonzero(done):
                self.lengths[b, self.episode[b]] = self.length[b]
                self.episode[b] += 1
                self.step[b], self.length[b] = 0, self.rng.integers(1, LONGEST + 1)


def drawn(replay, count, seed=0):
    """The episodes of a sample, {(game, episode): its length}, after a look at every step of them."""
    episodes = replay.sample(count, np.random.default_rng(seed))
    assert episodes.real[0].all()
    assert (np.diff(episodes.real.astype(int), axis=0) <= 0).all()
    tags = np.zeros((*episodes.real.shape, 3), np.int64)
    tags[episodes.real] = episodes.seen["tag"]
    found = {}
    for k, length in enumerate(episodes.real.sum(0)):
        game, episode, _ = tags[0, k]
        assert (tags[:length, k] == [(game, episode, t) for t in range(length)]).all()
        found[game, episode] = length
    assert len(found) == episodes.real.shape[1]  # nothing is drawn twice
    tag = episodes.seen["tag"]
    assert (episodes.seen["grid"][:, 0] == tag + 7).all()
    assert (episodes.action == tag[:, :2]).all()
    assert (episodes.reward == 100 * tag[:, 1] + tag[:, 2]).all()
    ends = tag[:, 2] + 1 == [found[game, episode] for game, episode, _ in tag]
    assert (episodes.truncated == (ends & (tag[:, 2] + 1 == LONGEST))).all()
    return found


@pytest.mark.parametrize("steps", [6, 11, 12, 13, 50, 203])
def test_episodes_come_back_whole_and_old_ones_are_forgotten(steps):
    replay, stream = EpisodeReplay(40, B, LONGEST), Stream()
    stream.play(replay, steps)
    found = drawn(replay, 1000)
    assert len(found) == replay.num_episodes
    assert found.items() <= stream.lengths.items()
    for game in range(B):
        kept = sorted(episode for g, episode in found if g == game)
        # Those whose steps are all among the last 13 of the game.
        room, expected = 13 - stream.step[game], []
        for episode in reversed(range(stream.episode[game])):
            room -= stream.lengths[game, episode]
            if room < 0:
                break
            expected.insert(0, episode)
        assert kept == expected


@pytest.mark.parametrize("steps", [4, 12, 13, 40])
def test_episodes_left_open_are_dropped_where_games_begin_anew(steps):
    """What is drawn later are whole episodes of the new games; `drawn` looks at every step of them."""
    replay, stream = EpisodeReplay(40, B, LONGEST), Stream()
    stream.play(replay, steps)
    other = EpisodeReplay(40, B, LONGEST)
    other.restore(replay.snapshot())
    other.drop_open()
    before = drawn(other, 1000)
    assert before == drawn(replay, 1000)
    stream.episode += stream.step > 0
    stream.step[:] = 0
    left = stream.episode.copy()
    for _ in range(30):
        stream.play(other, 1)
        found = drawn(other, 1000)
        new = {key: length for key, length in found.items() if key[1] >= left[key[0]]}
        assert new.items() <= stream.lengths.items()
        assert {key: length for key, length in found.items() if key not in new}.items() <= before.items()
    assert len(new) > B

"""An actor that knows no learner: weights come in as safetensors bytes, a trajectory goes out, pickled."""

import pickle
import struct
import sys

import torch
from safetensors.torch import load

from magrounding.agents.weights import fit_weights
from tests.many_choices import make_actor, make_reader

LENGTH = struct.Struct("<Q")


def send(pipe, data):
    """A message, its length before it."""
    pipe.write(LENGTH.pack(len(data)) + data)
    pipe.flush()


def receive(pipe):
    """The next message; None at the end."""
    length = pipe.read(LENGTH.size)
    return pipe.read(*LENGTH.unpack(length)) if length else None


def main():
    """Play a rollout with each set of weights that comes in."""
    torch.set_num_threads(1)
    policy = make_reader(seed=99)
    worker = make_actor(policy)
    while (weights := receive(sys.stdin.buffer)) is not None:
        fit_weights(policy, load(weights), "what came in")
        send(sys.stdout.buffer, pickle.dumps(worker.collect().trajectories[0]))


if __name__ == "__main__":
    main()

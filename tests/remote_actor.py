"""An actor that knows no learner: weights come in as safetensors bytes, a trajectory goes out as npz bytes."""

import io
import struct
import sys

import numpy as np
import torch
from safetensors.torch import load

from magrounding.agents.weights import fit_weights
from magrounding.training.wire import trajectory_from_arrays, trajectory_to_arrays
from tests.many_choices import make_actor, make_reader

LENGTH = struct.Struct("<Q")


def pack(trajectory):
    """A trajectory as npz bytes."""
    buffer = io.BytesIO()
    np.savez(buffer, **trajectory_to_arrays(trajectory))
    return buffer.getvalue()


def unpack(data):
    """What `pack` packed."""
    return trajectory_from_arrays(dict(np.load(io.BytesIO(data), allow_pickle=False)))


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
        send(sys.stdout.buffer, pack(worker.collect().trajectories[0]))


if __name__ == "__main__":
    main()

"""Motion: things are followed from frame to frame, and what looks the same reads differently as it moves."""

import numpy as np
import torch

import magrounding as mg
from magrounding.agents.building import make_policy
from magrounding.agents.document_policy import Inputs
from magrounding.agents.relread.motion import FRAMES, TRACKS, Frame, initial_tracks, track
from magrounding.agents.relread.network import Relread
from tests.agents.samples import documents_of, seen_by


def gait(tendency, moved, frames):
    return (tendency % 5 * 2 + moved) * FRAMES + frames


def follow(frames, agents):
    """Gaits and directions [T][M] of one game.

    Args:
        frames: for each step the (word, row, column) of each thing.
        agents: for each step the (row, column) of each agent.
    """
    tracks = initial_tracks(1, len(agents[0]))
    seen = []
    for things, places in zip(frames, agents, strict=True):
        words, rows, columns = torch.tensor(things).t().unsqueeze(1)
        shown = torch.ones(words.shape, dtype=torch.bool)
        motion, tracks = track(Frame(words.int(), rows, columns, shown, torch.tensor([places])), tracks)
        seen.append((motion.motion_class[0].tolist(), motion.direction[0].tolist()))
    return seen


def test_who_comes_nearer_who_goes_away_and_who_stays():
    """A thing below the agent comes, one above goes, one aside does nothing; each takes a step every other frame."""
    above_and_below = [(2, 9), (2, 8), (2, 8), (1, 7)]
    seen = follow([[(7, above, 4), (7, below, 4), (8, 5, 0)] for above, below in above_and_below], [[(5, 4)]] * 4)
    went, came, stayed = (list(column) for column in zip(*(gaits for gaits, _ in seen), strict=True))
    assert went == [gait(0, 0, 0), gait(0, 0, 1), gait(0, 0, 2), gait(-1, 1, 3)]
    assert came == [gait(0, 0, 0), gait(1, 1, 1), gait(1, 1, 2), gait(2, 1, 3)]
    assert stayed == [gait(0, 0, frames) for frames in range(4)]
    up = FRAMES
    assert [directions for _, directions in seen] == [[0] * 3, [0, up, 0], [0, up + 1, 0], [up, up, 0]]


def test_a_step_is_judged_by_where_agents_were_before_it():
    """The agent jumps past what comes towards it; of two agents the nearest counts, and never a dead one."""
    thing = [[(7, 5, column)] for column in (0, 1)]
    assert follow(thing, [[(5, 2)], [(5, 0)]])[1][0] == [gait(1, 1, 1)]
    assert follow(thing, [[(5, 2), (5, 0)], [(5, 2), (5, 0)]])[1][0] == [gait(-1, 1, 1)]
    assert follow(thing, [[(5, 2), (-1, -1)], [(5, 2), (-1, -1)]])[1][0] == [gait(1, 1, 1)]


def test_what_appears_jumps_or_is_one_too_many_is_new():
    seen = follow([[(7, 0, 0), (8, 0, 0)], [(7, 0, 3), (9, 0, 0)]], [[(5, 5)]] * 2)
    assert seen[1][0] == [0, 0]
    crowd = [(7 + k, 0, k) for k in range(TRACKS + 1)]
    assert follow([crowd, crowd], [[(5, 5)]] * 2)[1][0] == [gait(0, 0, 1)] * TRACKS + [0]


def network(spec, seed=0, agent="relread", **options):
    torch.manual_seed(seed)
    policy = make_policy(
        agent, spec, **{"similarity": 8, "meaning": 4, "motion": 4, "hidden": 32, "top": 16, **options}
    )
    torch.nn.init.normal_(policy.get_parameter("policy.weight" if agent == "relread" else "reader.policy.weight"))
    return policy


def standing(vec, seed=0):
    observation, _ = vec.reset(seed=seed)
    return seen_by(0, observation, vec.spec), documents_of(observation)


def test_what_looks_the_same_reads_differently_as_it_moves():
    vec = mg.make_vec("messenger", 4, copy=True, stage="s3")
    board, texts = standing(vec)
    policy, blind = network(vec.spec), network(vec.spec, motion=0)
    assert isinstance(policy, Relread)
    assert isinstance(blind, Relread)
    torch.nn.init.normal_(policy.reader.get_parameter("moves.embedding.weight"))
    board["grid"].zero_()
    board["grid"][:, 2, 2, 0] = board["grid"][:, 2, 7, 0] = 5
    board["position"][:] = torch.tensor([8, 5])
    later = {**board, "grid": board["grid"].clone()}
    later["grid"][:, 2, 2, 0], later["grid"][:, 3, 2, 0] = 0, 5  # the first of the two has come nearer
    text, document = policy.encode_text(*texts), torch.arange(4)
    memory = policy.respond(Inputs(board, text, document)).memory
    things = policy.find(later)
    moved, stood = int(things.row[0].argmax()), int(things.row[0].argmin())
    motion, _ = policy.follow(things, later, memory)
    assert motion is not None
    reading, _, of = policy.reader.read(
        things.words, text, torch.nn.functional.pad(motion.motion_class, (0, 1)).unsqueeze(-1)
    )
    told = reading.features[torch.arange(4), of[:, moved, 0]] - reading.features[torch.arange(4), of[:, stood, 0]]
    assert (told[:, 2:].abs().amax(1) > 1e-4).all()  # what the statements mean for either
    at_first = policy.relate(things, text, document, policy.follow(things, later, None)[0])
    torch.testing.assert_close(at_first[:, moved], at_first[:, stood])
    same = blind.relate(things, blind.encode_text(*texts), document)
    torch.testing.assert_close(same[:, moved], same[:, stood])


def foresight(policy, board, text, output):
    return policy.auxiliary(Inputs(board, text, torch.arange(len(board["grid"]))), output, {}).losses["motion"]


def test_every_weight_of_motion_learns_from_actions_or_from_foreseeing():
    vec = mg.make_vec("messenger", 8, copy=True, stage="s3")
    board, texts = standing(vec)
    policy = network(vec.spec)
    text, memory, document = policy.encode_text(*texts), None, torch.arange(8)
    for step in range(3):
        memory = policy.respond(Inputs(board, text, document), memory).memory
        seen, *_ = vec.step(np.full((8, 1), step % 2 + 1))
        board = seen_by(0, seen, vec.spec)
    output = policy.respond(Inputs(board, text, document), memory)
    (output.logits.log_softmax(-1)[:, 0].sum() + output.value.sum()).backward(retain_graph=True)
    learned = {name for name, parameter in policy.named_parameters() if parameter.grad is not None}
    foreseeing = {"reader.moves.embedding.weight", "reader.moves.gaits.weight", "reader.moves.gaits.bias"}
    assert {"motions.0.weight", "motions.1.weight"} <= learned
    assert not foreseeing & learned
    policy.zero_grad()
    surprise = foresight(policy, board, text, output)
    assert (surprise > 0).all()
    surprise.sum().backward()
    about = {"reader.symbols.weight", "reader.words.weight", "reader.sharpness"}
    learned = {name for name, parameter in policy.named_parameters() if parameter.grad is not None}
    assert learned == foreseeing | about

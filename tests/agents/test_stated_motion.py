"""What statements say of motion is learned by foreseeing it, and read by spelling."""

import torch

from magrounding.agents.relread.manual_reader import ManualReader
from magrounding.agents.relread.motion import FRAMES, MOTION_CLASSES, StatedMotion

NO_GOAL = torch.zeros(1, 0, dtype=torch.int64)


def statements(*lines, size):
    """[1, S, V]"""
    has = torch.zeros(1, len(lines), size)
    for k, line in enumerate(lines):
        has[0, k, list(line)] = 1
    return has


def test_words_spelt_alike_say_much_the_same_and_others_nothing():
    moves = StatedMotion(4, ["", "fleeing", "flees", "sword"])
    torch.nn.init.normal_(moves.gaits.weight)
    said = statements([1], [2], [3], [], size=4)
    assert torch.equal(moves(said)[0, 0], moves(said)[0, 3])  # untrained no word says anything
    with torch.no_grad():
        moves.embedding(moves.ids, moves.begins)  # every id has its place
        used = moves.ids[moves.begins[1] : moves.begins[2]]
        moves.embedding.weight[used] = torch.randn(4)
        fleeing, flees, sword, nothing = moves(said)[0]
    assert torch.equal(sword, nothing)
    change, likewise = fleeing - nothing, flees - nothing
    assert torch.cosine_similarity(change, likewise, 0) > 0.5


def test_who_foresees_motion_finds_the_statement_about_what_moves_so():
    """Words 3 and 4 move as words 5 and 6 in their statements say; then both statements are about 3."""
    torch.manual_seed(0)
    reader = ManualReader(7, motion=4, spelling=["", "", "", "tree", "dog", "stands", "comes"])
    manuals = torch.tensor([[[3, 5], [4, 6]], [[3, 6], [4, 5]]])
    stands, comes = FRAMES - 1, 3 * FRAMES - 1
    words, gait = torch.tensor([[3, 4], [3, 4]]), torch.tensor([[stands, comes], [comes, stands]])
    optimizer = torch.optim.Adam(reader.parameters(), lr=0.05)
    for _ in range(60):
        told, which = reader.predict_motion(words, gait, reader(manuals, NO_GOAL.expand(2, 0)))
        loss = -told[torch.arange(2).unsqueeze(1), which].mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    text = reader(torch.tensor([[[3, 5], [3, 6]]]), NO_GOAL)
    _, attention = reader._attend(torch.tensor([3, 3, 3]), text, torch.tensor([stands, comes, 0]))
    torch.testing.assert_close(attention[0].t(), torch.tensor([[1.0, 0], [0, 1], [0.5, 0.5]]), atol=0.1, rtol=0)


def test_what_was_to_be_foreseen_is_a_mixture_of_what_statements_say():
    torch.manual_seed(0)
    reader = ManualReader(12, similarity=4, motion=4)
    tables = [reader.get_parameter(f"{name}.weight") for name in ("symbols", "words", "moves.embedding")]
    for table in tables:
        torch.nn.init.normal_(table)
    text = reader(torch.tensor([[[3, 5, 0], [4, 6, 7]]]), NO_GOAL)
    told, which = reader.predict_motion(torch.tensor([9, 9, 10]), torch.tensor([7, 7, MOTION_CLASSES - 1]), text)
    assert which.tolist() == [0, 0, 1]
    about = reader.similarity(torch.tensor([9, 10]), text)[0].softmax(1)  # neither word is in a statement
    assert reader.moves is not None
    chances = (text["moves"][0] + reader.moves.usual()).exp()  # [S, MOTION_CLASSES]
    expected = (about * chances[:, [7, MOTION_CLASSES - 1]].t()).sum(1).log()
    torch.testing.assert_close(told[0], expected)
    told.sum().backward()
    for table in tables:
        assert table.grad is not None
        assert table.grad.any()

"""The ways through the package stay short: `python -m tools.ways --verbose` prints what they are."""

import pytest

from tools.ways import measure

BARS = {
    ("option", "functions"): 78,
    ("option", "files"): 26,  # 24 before seeds in processes of their own and trackers
    ("option", "calls"): 250,  # each game is configured once: a preset is resolved when all that was typed is known
    # 3,140 before signals, checked readers, bounded networks, owners of folders, amendments, jobs and trackers; 3,520
    # before sentences of files, which are parsed and checked as ours are; 3,580 before a trajectory went to its device
    # in one copy, from which minibatches are taken there.
    ("gradient", "lines"): 3540,
    ("ppo", "files"): 4,
    ("ppo", "lines"): 1_020,  # 966 before passes were kept
    ("imitation", "files"): 4,
    ("imitation", "lines"): 990,  # 940 before passes were kept
    ("folder", "ways"): 4,
    ("circles", "circles"): 3,
}


@pytest.fixture(scope="module")
def ways():
    return measure()


@pytest.mark.slow
@pytest.mark.parametrize(("way", "of"), BARS)
def test_a_way_is_short(ways, way, of):
    assert ways[way].counts[of] <= BARS[way, of], "\n".join(ways[way].detail)

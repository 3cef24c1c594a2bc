"""A trial of the campaign of kills: `make test-kills` makes many of them."""

from benchmarks.campaign import __main__ as campaign
from magrounding.cli.command import CommandLine
from magrounding.storage import read_json
from tests.full import in_the_full_suite


@in_the_full_suite("a training, killed and resumed")
def test_a_trial_of_kills_ends_as_an_undisturbed_command(tmp_path):
    line = ("--only", "kills", "--minutes", "0", "--seed", "5", "--out", str(tmp_path))
    assert CommandLine(campaign.PROG, line).run(campaign) == 0
    (trial,) = read_json(tmp_path / "campaign.json")["trials"]
    assert (trial["kind"], trial["broken"]) == ("kills", "")

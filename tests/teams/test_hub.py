"""Teams on a model hub, by the real client against a hub on the loopback."""

import os
from pathlib import Path

import pytest

import magrounding as mg
from magrounding.errors import ConfigurationError
from magrounding.pretrained import hub
from tests.experiment.tiny_runs import tiny_run
from tests.forked import ROOT
from tests.hub_server import Repository, hub_server

NAME = "someone/tiny"
NOWHERE = "http://127.0.0.1:9"
"""An address at which no program listens."""
TEAM = {"about.json", "config.json", "s1/state.json", "s1/agent_0.safetensors", "s1/agent_1.safetensors"}
KEPT = {".gitattributes", "README.md", "game.gif"}
"""Files of a repository that are not loaded."""
FIND = """
import sys
from magrounding.cli.command import run_command
from magrounding.pretrained import find_run
sys.exit(run_command(lambda: print(find_run(sys.argv[1]))))
"""


@pytest.mark.parametrize("name", ["tiny", "a/b/c", "../etc/x", "a b/c", ""])
def test_what_is_no_repository_is_refused_before_any_connection(name, monkeypatch):
    monkeypatch.setattr(hub, "client", lambda: pytest.fail("asked"))
    with pytest.raises(ConfigurationError):
        mg.load_team(f"hub:{name}")


@pytest.fixture(scope="module")
def served():
    pytest.importorskip("huggingface_hub", reason="the extra `hub` is absent: huggingface_hub")
    with hub_server() as server:
        yield server


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    return tiny_run(tmp_path_factory.mktemp("runs") / "run", "s1")


@pytest.fixture(scope="module")
def call(served, forked, tmp_path_factory):
    """Call Python in a process of its own, as the client reads its address once."""
    own = {"HF_ENDPOINT": served.address, "HF_TOKEN": served.token, "HF_HOME": str(tmp_path_factory.mktemp("home"))}
    own |= {"HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}

    def call(module, *arguments, **changed):
        return forked.run(module, *arguments, cwd=ROOT, env={**os.environ, **own, **changed})

    return call


@pytest.fixture(scope="module")
def find(call):
    """Find the folder of a team in a process of its own; return (exit code, names there, error)."""

    def find(name, **changed):
        done = call("-c", FIND, f"hub:{name}", **changed)
        folder = Path(done.stdout.strip() or "nowhere")
        names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
        return done.returncode, names, done.stderr

    return find


@pytest.fixture(scope="module")
def published(served, finished, call):
    done = call("magrounding", "publish", "--run", finished, "--hub", NAME, "--license", "mit")
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_team_travels(served, published, call, find):
    assert published == f"{served.address}/{NAME}: load it with load_team('hub:{NAME}')\n"
    files = served.repositories[NAME].at("main")[1]
    assert set(files) == TEAM | KEPT
    assert f"mg.load_team('hub:{NAME}')" in files["README.md"].decode()
    served.asked.clear()
    done = call("-c", f"import magrounding as mg; print(mg.load_team('hub:{NAME}').num_agents)")
    assert (done.returncode, done.stdout) == (0, "2\n"), done.stderr
    asked = {each.partition("/resolve/")[2].partition("/")[2] for each in served.asked if "/resolve/" in each}
    assert asked == TEAM
    assert find(NAME, HF_ENDPOINT=NOWHERE)[:2] == (0, TEAM), "it is in the cache"
    assert find(f"{NAME}@{served.repositories[NAME].head}")[:2] == (0, TEAM)


def test_other_files_stay_there_and_those_of_an_earlier_team_go(served, published, call, find, finished):
    repository = served.repositories[NAME]
    planted = {"s2/agent_9.safetensors": b"1", "model.pkl": b"cos", "s1/evil.py": b"1", "notes.txt": b"1"}
    repository.commit({**repository.at("main")[1], **planted})
    assert find(NAME)[:2] == (0, TEAM | {"s2/agent_9.safetensors"})
    again = call("magrounding", "publish", "--run", finished, "--hub", NAME, "--seed", "1")
    assert again.returncode == 0, again.stderr
    assert set(repository.at("main")[1]) == TEAM | KEPT | {"model.pkl", "s1/evil.py", "notes.txt"}


class Huge(bytes):
    """What the hub says has a terabyte."""

    def __len__(self):
        return 2**40


FILES = {
    "someone/else": {"README.md": b"", "model.safetensors": b""},
    "someone/huge": {"about.json": b"{}", "config.json": Huge()},
}
"""Repository → its files, of which no team is loaded."""


@pytest.mark.parametrize(
    ("name", "changed"),
    [*((name, {}) for name in FILES), ("someone/nothing", {}), ("someone/away", {"HF_ENDPOINT": NOWHERE})],
)
def test_no_team_no_repository_and_no_connection_are_one_sentence(served, find, name, changed):
    for each, files in FILES.items():
        served.repositories[each] = Repository()
        served.repositories[each].commit(files)
    code, _, error = find(name, **changed)
    assert code == 2
    assert error.startswith(f"error: hub:{name} ")
    assert error.count("\n") == 1


def test_an_upload_that_is_refused_is_one_sentence(finished, call):
    assert call("magrounding", "publish", "--run", finished, "--hub", NAME, HF_TOKEN="hf_wrong").returncode == 2

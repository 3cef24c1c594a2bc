"""Real trackers: each shows the curve of `metrics.jsonl`, to its last step, whatever was killed."""

import importlib.util
import signal
from collections import defaultdict

import pytest

from magrounding.experiment.metrics import read_metrics
from magrounding.run_folder import METRICS_FILE
from magrounding.storage import read_json
from tests.extensions.trackers.tracker_readers import READERS, SERVICES, environment
from tests.forked import ROOT

INSTALLED = [name for name in SERVICES if importlib.util.find_spec(name)]

pytestmark = pytest.mark.slow


def measured(folder):
    """What the run wrote, by the names that trackers show."""
    curves = defaultdict(dict)
    for line in read_metrics(folder / METRICS_FILE):
        place = f"{line['stage']}/{line['phase']}/"
        if line["kind"] == "evaluation":
            place += "{set} {when} {play} manual {manual}/".format(**line)
        for name, value in line.items():
            if isinstance(value, float):
                curves[place + name][line["total_steps"]] = value
    return dict(curves)


def tracked(forked, folder, store, trackers, kill_at=0, **more):
    """Train, or go on, in a process of its own; what it says of trackers."""
    env = {**environment(store), **more}
    done = forked.run("tests.extensions.trackers.tracked_run", folder, ",".join(trackers), kill_at, cwd=ROOT, env=env)
    assert done.returncode == (-signal.SIGKILL if kill_at else 0), done.stdout + done.stderr
    return [each for each in done.stdout.splitlines() if each.startswith("tracker ")]


def check(tracker, folder, store, monkeypatch):
    for name, value in environment(store).items():
        monkeypatch.setenv(name, value)
    if tracker in INSTALLED and tracker == "trackio":
        import trackio.sqlite_storage
        import trackio.utils

        monkeypatch.setattr(trackio.utils, "TRACKIO_DIR", store / "trackio")
        monkeypatch.setattr(trackio.sqlite_storage, "TRACKIO_DIR", store / "trackio")
    name = read_json(folder / "trackers.json")["name"] if tracker in SERVICES else ""
    shown, expected = READERS[tracker](folder, "tests", name, store), measured(folder)
    assert shown.keys() == expected.keys()
    for tag in expected:
        assert shown[tag] == pytest.approx(expected[tag], rel=1e-6), tag


@pytest.fixture(scope="module")
def killed(forked, tmp_path_factory):
    """A run that was killed twice and resumed, shown by all that is installed."""
    store = tmp_path_factory.mktemp("killed")
    tracked(forked, store / "run", store, ["tensorboard", *INSTALLED], kill_at=4)
    tracked(forked, store / "run", store, [], kill_at=3)
    tracked(forked, store / "run", store, [])
    return store


@pytest.mark.parametrize("tracker", READERS)
def test_a_tracker_shows_the_same_curve_as_the_file(tracker, killed, monkeypatch):
    if tracker in SERVICES:
        pytest.importorskip(tracker)
    check(tracker, killed / "run", killed, monkeypatch)


GONE = {
    "wandb": {"WANDB_MODE": "online", "WANDB_API_KEY": "a" * 40, "WANDB_BASE_URL": "http://127.0.0.1:9"},
    "mlflow": {"MLFLOW_TRACKING_URI": "http://127.0.0.1:9", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1"},
    "trackio": {"TRACKIO_SERVER_URL": "http://127.0.0.1:9", "TRACKIO_WRITE_TOKEN": "a"},
}
"""A server that refuses connections."""


@pytest.mark.parametrize("tracker", SERVICES)
def test_a_run_finishes_without_the_server_and_is_sent_later(forked, tracker, tmp_path, monkeypatch):
    pytest.importorskip(tracker)
    said = tracked(forked, tmp_path / "run", tmp_path, [tracker], **GONE[tracker])
    assert len(said) == 1
    assert said[0].startswith(f"tracker {tracker}: it ")
    assert said[0].endswith(f"send what is missing with: magrounding track {tmp_path / 'run'} --tracker {tracker}")
    assert (tmp_path / "run" / "report.md").exists()
    done = forked.run("magrounding.cli.main", "track", tmp_path / "run", cwd=ROOT, env=environment(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    check(tracker, tmp_path / "run", tmp_path, monkeypatch)

"""Workflows and templates of a public forge: they parse, run targets that there are, and pin what they use."""

import re
import tomllib
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml", reason="PyYAML comes with pre-commit of the extra `dev`")

ROOT = Path(__file__).parents[1]
FORGE = ROOT / ".github"
pytestmark = pytest.mark.skipif(not FORGE.is_dir(), reason="not a checkout")

WORKFLOWS = sorted(FORGE.glob("workflows/*.yml"))
ON = True
"""What YAML 1.1 makes of the key `on`."""


def read(path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def steps(workflow):
    for job in workflow["jobs"].values():
        for step in job["steps"]:
            yield job, step


def test_there_are_workflows():
    assert {path.stem for path in WORKFLOWS} == {"tests", "weekly", "release"}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
class TestWorkflow:
    def test_it_has_what_a_workflow_needs(self, path):
        workflow = read(path)
        assert {"name", ON, "permissions", "jobs"} <= set(workflow)
        assert workflow["permissions"] == {"contents": "read"}
        for job, step in steps(workflow):
            assert "runs-on" in job
            assert ("uses" in step) != ("run" in step)

    def test_actions_are_pinned_by_their_major_version(self, path):
        used = [step["uses"] for _, step in steps(read(path)) if "uses" in step]
        assert used
        assert [each for each in used if not re.fullmatch(r"[\w-]+/[\w-]+@(v\d+|release/v\d+)", each)] == []

    def test_needs_names_jobs(self, path):
        jobs = read(path)["jobs"]
        assert {job["needs"] for job in jobs.values() if "needs" in job} <= set(jobs)

    def test_targets_and_files_are_there(self, path):
        targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
        for job, step in steps(read(path)):
            for target in re.findall(r"\bmake ([\w-]+)", step.get("run", "")):
                assert target in targets
            if "${{ matrix.target }}" in step.get("run", ""):
                assert set(job["strategy"]["matrix"]["target"]) <= targets
            assert all((ROOT / file).exists() for file in re.findall(r"\btests/\w+\.py", step.get("run", "")))


def test_every_python_that_is_supported_is_tested():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = {each.rpartition(" ")[2] for each in project["classifiers"] if re.search(r"Python :: 3\.\d+$", each)}
    matrix = read(FORGE / "workflows" / "tests.yml")["jobs"]["test"]["strategy"]["matrix"]["include"]
    assert {each["python"] for each in matrix if each["os"].startswith("ubuntu")} == named
    assert sum(each["os"].startswith("macos") for each in matrix) == 1


def test_a_release_is_published_without_a_password():
    publish = read(FORGE / "workflows" / "release.yml")["jobs"]["publish"]
    assert publish["permissions"] == {"id-token": "write"}
    assert publish["needs"] == "build"
    assert not any("password" in str(step) for step in publish["steps"])


@pytest.mark.parametrize("name", ["bug", "proposal"])
def test_forms_ask_for_something(name):
    form = read(FORGE / "ISSUE_TEMPLATE" / f"{name}.yml")
    assert {"name", "description", "body"} <= set(form)
    assert all({"type", "id", "attributes"} <= set(part) and part["attributes"]["label"] for part in form["body"])

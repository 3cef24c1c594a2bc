"""Teams on a model hub: "hub:OWNER/NAME" is a repository with the files of a published team (extra `hub`).

Only JSON and safetensors by the names that a team's files have are downloaded, of a bounded size, at one commit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from magrounding.errors import CheckpointError, ConfigurationError, MagroundingError, needed
from magrounding.storage import ARRAYS

HUB = "hub:"
_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)
_TEAM_FILE = re.compile(r"(?:about|config)\.json|(?:[\w .-]+/)?(?:state\.json|agent_\d+\.safetensors)")
"""Path of what a team is loaded from, within its folder."""
_LOADED = ["about.json", "config.json", "*state.json", "*agent_*.safetensors"]
"""The same, as patterns of the client."""
_REPLACED = ["*.json", "*.safetensors"]
"""Files of an earlier team in a repository, which the upload of another removes where it has none of that name."""


def client() -> Any:
    """The client's library; MissingExtra where it is not installed."""
    with needed("a team on a model hub", "hub"):
        import huggingface_hub
        import huggingface_hub.errors
    return huggingface_hub


def download_team(name: str) -> Path:
    """Download a team into the hub's cache, and return its folder there; without a network, what the cache has.

    Args:
        name: "OWNER/NAME", or "OWNER/NAME@REVISION" for a branch, a tag or a commit.

    Raises:
        ConfigurationError: another form of name.
        MissingExtra: `huggingface_hub` is not installed.
        CheckpointError: no such repository or revision, no team in it, one that is too large, or no connection.
    """
    repository, _, revision = name.partition("@")
    check_repository(repository)
    hub = client()
    download = partial(hub.snapshot_download, repository, revision=revision or None)
    with _one_sentence(f"{HUB}{name} cannot be loaded"):
        try:
            info = hub.HfApi().model_info(repository, revision=revision or None, files_metadata=True)
        except hub.errors.HfHubHTTPError:
            raise
        except Exception:  # no connection, for which each version of the client has a class of its own
            with suppress(Exception):
                return Path(download(allow_patterns=_LOADED, local_files_only=True))
            raise
        sizes = {each.rfilename: each.size or 0 for each in info.siblings or () if _TEAM_FILE.fullmatch(each.rfilename)}
        if not {"about.json", "config.json"} <= set(sizes):
            raise CheckpointError(f"{HUB}{name} holds no team that `magrounding publish` wrote: about.json is missing")
        if sum(sizes.values()) > ARRAYS:
            raise CheckpointError(f"{HUB}{name} has {sum(sizes.values()):,} bytes, and a team may have {ARRAYS:,}")
        # By the name of the revision, not of the commit: else the cache would not know what the name stands for.
        folder = Path(download(allow_patterns=sorted(sizes)))
        if folder.name != info.sha:
            raise CheckpointError(f"{HUB}{name} was changed while it was downloaded: load it again")
        return folder


def upload_team(folder: Path, repository: str, *, private: bool = False) -> str:
    """Upload a published team's folder to a repository, which is made where there is none; return its address.

    The account is the hub's own: `hf auth login`, or the environment variable HF_TOKEN. Errors as of `download_team`.
    """
    check_repository(repository)
    api = client().HfApi()
    with _one_sentence(f"{folder.name} cannot be uploaded to {HUB}{repository}"):
        address = api.create_repo(repository, private=private or None, exist_ok=True)
        message = f"Team {folder.name}"
        api.upload_folder(repo_id=repository, folder_path=folder, commit_message=message, delete_patterns=_REPLACED)
    return str(address)


def check_repository(name: str) -> None:
    """Raise ConfigurationError for what is no name of a repository."""
    if not _REPOSITORY.fullmatch(name):
        raise ConfigurationError(f"a team on a hub is OWNER/NAME, or OWNER/NAME@REVISION to load it, got {name!r}")


@contextmanager
def _one_sentence(what: str) -> Iterator[None]:
    """Raise what the client raises, of which its connections have many classes, as a CheckpointError in a sentence."""
    try:
        yield
    except MagroundingError:
        raise
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        reason = " ".join(lines[:2]) or type(error).__name__  # the status, then what the hub says of it
        raise CheckpointError(f"{what}: {reason}") from error

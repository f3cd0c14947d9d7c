"""Run git in a folder, such that a repository starts no program, and no variable selects another repository."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from stele.errors import SteleError

TIMEOUT = 60.0  # seconds; a partial clone may have to download a file
# the configuration of a repository may start no program: no monitor of files, and no hook
SAFE = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")


def run(
    folder: Path,
    *arguments: str,
    text: bytes = b"",
    protocols: str,
    variables: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Return the finished process, also if git failed.

    ``text`` is its input. It may download through ``protocols``, such as ``git:https``. It has the user's
    configuration unless ``variables`` say otherwise. Raises SteleError if git is missing or does not end in TIMEOUT.
    """
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name.startswith("GIT_CONFIG_")
    }
    settings = {
        "LC_ALL": "C",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_ALLOW_PROTOCOL": protocols,
    }
    try:
        return subprocess.run(
            ["git", *SAFE, "-C", str(folder), "--no-pager", *arguments],
            env={**inherited, **settings, **(variables or {})},
            input=text,
            capture_output=True,
            timeout=TIMEOUT,
            check=False,
        )
    except FileNotFoundError:
        raise SteleError("git is not on PATH. Install git, and run the command again.") from None
    except subprocess.TimeoutExpired:
        raise SteleError(f"git did not answer within {TIMEOUT:g} s in {folder}. Try again.") from None

"""Find py-spy, which shows the functions of a framework without a profiler."""

import os
import shutil
import sys
from pathlib import Path

from stele.environments import permissions


def find() -> str | None:
    """Return the path of py-spy beside this Python, or else on PATH; None if it is not installed.

    Raises SteleError if other users can replace it.
    """
    folders = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    found = shutil.which("py-spy", path=folders)
    if found is not None:
        permissions.check(found)
    return found

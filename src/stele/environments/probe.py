"""Run a program that is no worker to its end: an installer, or another interpreter that says what it can import."""

import errno
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence

from stele import temporary
from stele.environments import libraries, permissions

END_WITH_HOST = (
    (
        sys.executable,
        "-ISc",
        "import ctypes, os, sys\n"
        "ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG, SIGKILL: linux/prctl.h\n"
        "os.execvp(sys.argv[1], sys.argv[1:])",
    )
    if sys.platform.startswith("linux")
    else ()
)


def run(
    command: Sequence[str],
    *,
    timeout: float | None = None,
    variables: Mapping[str, str] | None = None,
    text: str | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a program in an empty folder and return the finished process, also if it failed. ``text`` is its input.

    Python imports from the folder in which it starts. In the user's folder, a checkout of a framework would be imported
    in place of the installed one. On Linux the program ends when the host dies. Raises OSError if it does not start,
    SteleError if other users can replace it, and subprocess.TimeoutExpired.
    """
    if shutil.which(command[0]) is None:
        raise FileNotFoundError(errno.ENOENT, "no such program", command[0])
    permissions.check(command[0])
    with temporary.folder() as folder:
        return subprocess.run(
            [*END_WITH_HOST, *command],
            env=libraries.clean_variables(dict(variables or {})),
            cwd=folder,
            input=text or "",
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

"""What environments cost: all of them built from a cold download cache, then from a warm one.

    python perf_tests/builds.py

Builds into temporary folders, so that nothing of the user's is touched. Prints seconds. Ends with 1 if the limits of
10 minutes cold and 1 minute warm, on two processors, are passed, or if an environment cannot be built here.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

LIMITS = {"cold": 600.0, "warm": 60.0}  # seconds
COMMAND = (sys.executable, "-m", "stele", "env")


def seconds(*arguments: str, folder: Path) -> float:
    """How long ``stele env`` takes with its caches in ``folder``."""
    variables = {**os.environ, "STELE_CACHE": str(folder / "stele"), "UV_CACHE_DIR": str(folder / "uv")}
    start = perf_counter()
    subprocess.run([*COMMAND, *arguments], env=variables, check=True)
    return perf_counter() - start


def main() -> int:
    passed = False
    with tempfile.TemporaryDirectory(prefix="stele-") as name:
        for cache, limit in LIMITS.items():
            taken = seconds("make", "--all", folder=Path(name))
            print(f"{cache}: {taken:.0f} s, at most {limit:.0f}", flush=True)
            passed |= taken > limit
            seconds("remove", "--all", folder=Path(name))
    return int(passed)


if __name__ == "__main__":
    sys.exit(main())

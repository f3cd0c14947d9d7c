"""How long builds take: all environments, first with a cold download cache, then with a warm one.

    python -m checks builds

Builds into temporary folders and leaves the user's caches alone. Prints seconds. Ends with 1 if a build exceeds its
limit, 10 minutes cold or 1 minute warm on two processors, or if an environment cannot be built on this machine.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

LIMITS = {"cold": 600.0, "warm": 60.0}  # seconds
COMMAND = (sys.executable, "-m", "stele", "env")


def time_command(*arguments: str, folder: Path) -> float:
    """Return the seconds that ``stele env`` takes with its caches in ``folder``."""
    variables = {**os.environ, "STELE_CACHE": str(folder / "stele"), "UV_CACHE_DIR": str(folder / "uv")}
    start = perf_counter()
    subprocess.run([*COMMAND, *arguments], env=variables, check=True)
    return perf_counter() - start


def main() -> int:
    exceeded = False
    with tempfile.TemporaryDirectory(prefix="stele-") as name:
        for cache, limit in LIMITS.items():
            seconds = time_command("make", "--all", folder=Path(name))
            print(f"{cache}: {seconds:.0f} s, limit {limit:.0f} s", flush=True)
            exceeded |= seconds > limit
            time_command("remove", "--all", folder=Path(name))
    return int(exceeded)


if __name__ == "__main__":
    sys.exit(main())

"""What does the installed plugin add to ``pytest --collect-only`` in an empty project? It ends with 1 above 20 ms.

    python -m checks overhead

30 runs with the plugin and 30 without it, in turns; the overhead is the median of the differences of neighbours. Other
plugins are not loaded: they take longer than pytest itself, and vary more than this plugin takes.
"""

import os
import sys
import tempfile
from pathlib import Path

from alternating import durations

from stele import statistics

RUNS = 30
MOST = 20.0  # milliseconds
PYTEST = (sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider")
PLUGIN = "pytest_stele.plugin"  # the entry point
# pytest ends with 5 if it collects no test, so the project has one
TEST = "def test_nothing():\n    pass\n"


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "test_nothing.py").write_text(TEST)
        os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        commands = {"with": (*PYTEST, "-p", PLUGIN), "without": PYTEST}
        seconds = durations(commands, runs=RUNS, cwd=Path(folder))
    pairs = zip(seconds["with"], seconds["without"], strict=True)
    shift = statistics.shift([1e3 * (slow - fast) for slow, fast in pairs])
    print(f"The plugin adds {shift.middle:.1f} ms [{shift.low:.1f} {shift.high:.1f}] to pytest --collect-only.")
    return int(shift.middle > MOST)


if __name__ == "__main__":
    sys.exit(main())

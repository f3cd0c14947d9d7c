"""Does ``stele bisect`` name the right release? A tiny framework on NumPy has eight; from 1.5 on they are 6 % slower.

    python -m checks bisection [--runs N] [--busy] [--pins]

Makes wheels in a folder, reads them into a ledger, builds them, and bisects once for each run, each time with a
different seed. ``--busy`` starts a foreign process: then the result may be open, but must not be wrong. ``--pins``
plants the slow-down into a dependency. Exit: 0 as expected; 1 a wrong result, or without ``--busy`` an open one.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support.wheels import wheel

ROOT = Path(__file__).parents[1]

FIRST_BAD = "abacus-1.5"
SLOWER = 1.06
DAY = 86400
ABACUS = '''
"""A tiny framework on NumPy. Its GRU only does some arithmetic."""
import sys
import types

import numpy
from stele_worker import __main__ as worker
from stele_worker.frameworks import recipe
from stele_worker.frameworks.numpy import framework
import beads

BEADS = round({beads} * beads.FACTOR)
FRAME = numpy.random.RandomState(0).standard_normal((64, 64))


class Framework(framework.Framework):
    def versions(self):
        return {{"abacus": "{version}", "beads": beads.VERSION}}


class Recipe(recipe.Recipe):
    def network(self, task):
        return FRAME

    def load(self, net, weights):
        return net

    def inference_step(self, net, task):
        def step(x):
            sums = net
            for _ in range(BEADS):
                sums = numpy.tanh(net @ sums / 64)
            return sums

        return step


if __name__ == "__main__":
    module = types.ModuleType("stele_worker.frameworks.abacus.framework")
    module.Framework = Framework
    page = types.ModuleType("stele_suite.recipes.gru.abacus")
    page.Recipe = Recipe
    sys.modules[module.__name__], sys.modules[page.__name__] = module, page
    sys.modules["stele_worker.frameworks.abacus"] = types.ModuleType("stele_worker.frameworks.abacus")
    sys.argv[1:] = []
    sys.exit(worker.main())
'''
TOML = """
label = "Abacus"
framework = "abacus"
imports = ["numpy", "beads"]
command = ["{python}", "-m", "abacus"]
python = "==%d.%d.*"
devices = ["cpu"]
[requirements]
"abacus" = "the framework"
[absent]
"gru train" = "it only infers"
cnn = "no images"
resnet50 = "no images"
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1, help="number of bisections; default: %(default)s")
    parser.add_argument("--busy", action="store_true", help="run a busy foreign process at the same time")
    parser.add_argument("--pins", action="store_true", help="plant the slow-down into a dependency")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_releases(folder, slow_dependency=arguments.pins)
        run_stele(folder, "releases", "sync", "abacus")
        with foreign_process(arguments.busy):
            results = [bisect(folder, seed, pins=arguments.pins) for seed in range(arguments.runs)]
    expected = "beads 1.0 to 2.0" if arguments.pins else FIRST_BAD
    wrong = [suspects for suspects in results if suspects and expected not in suspects]
    right = [suspects for suspects in results if suspects == [expected]]
    print(f"{len(right)} of {len(results)} runs named {expected}, {len(wrong)} were wrong")
    sys.exit(1 if wrong or (len(right) < len(results) and not arguments.busy) else 0)


def make_releases(folder, *, slow_dependency):
    """Make the wheels of eight releases of abacus and two of beads, and describe abacus as an environment."""
    for number in range(1, 9):
        version, slow = f"1.{number}", number >= 5 and not slow_dependency
        source = ABACUS.format(beads=round(100 * (SLOWER if slow else 1)), version=version)
        wheel(folder / "wheels", "abacus", version, source, requires=["numpy", "beads"])
        path = folder / "wheels" / f"abacus-{version}-py3-none-any.whl"
        os.utime(path, (1.7e9 + number * DAY,) * 2)
    for version, factor in (("1.0", 1.0), ("2.0", SLOWER if slow_dependency else 1.0)):
        wheel(folder / "wheels", "beads", version, f'FACTOR = {factor}\nVERSION = "{version}"\n')
    (folder / "environments").mkdir()
    (folder / "environments" / "abacus.toml").write_text(TOML % sys.version_info[:2])


def run_stele(folder, *arguments):
    paths = {
        "STELE_INDEX": folder / "wheels",
        "STELE_ENVIRONMENTS": folder / "environments",
        "STELE_CACHE": folder / "cache",
        "UV_FIND_LINKS": folder / "wheels",
    }
    variables = {**os.environ, **{name: str(path) for name, path in paths.items()}}
    command = [sys.executable, "-m", "stele", *arguments]
    return subprocess.run(command, cwd=folder, env=variables, check=False).returncode


def bisect(folder, seed, *, pins):
    """Return the suspects of one run."""
    ends = ["abacus==1.1 beads==1.0", "abacus==1.8 beads==2.0"] if pins else ["1.1", "1.8"]
    report = folder / "result.json"
    report.unlink(missing_ok=True)
    options = ["--pins"] if pins else []
    options += ["--scale=study", "--budget=15m", f"--seed={seed}", f"--json={report}"]
    run_stele(folder, "bisect", "abacus", *ends, *options)
    return json.loads(report.read_text())["suspects"] if report.exists() else []


@contextlib.contextmanager
def foreign_process(busy):
    """Run a process that is always busy, if ``busy``."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"]) if busy else None
    try:
        yield
    finally:
        if process is not None:
            process.kill()
            process.wait()


if __name__ == "__main__":
    main()

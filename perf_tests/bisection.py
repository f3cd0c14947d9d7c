"""Does ``stele bisect`` find who did it? Eight releases of a tiny framework on NumPy, of which 1.5 is 6 % slower.

    python perf_tests/bisection.py [--runs N] [--busy] [--pins]      or: tox -e bisection

Wheels are made in a folder, read into a ledger, built, and bisected from as many seeds as there are runs. ``--busy``
puts a foreign process beside them: then a name may be missing, but must not be wrong. ``--pins`` plants the slow-down
into a dependency. Exit: 0 as it should be; 1 a wrong name, or in the quiet a missing one.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))
from wheels import wheel  # noqa: E402

GUILTY = "abacus-1.5"
SLOWER = 1.06
DAY = 86400
ABACUS = '''
"""A tiny framework on NumPy: its GRU does some arithmetic, and no more."""
import sys
import types

import numpy
from stele_worker import __main__ as worker
from stele_worker.frameworks import numpy as framework
import beads

BEADS = round({beads} * beads.FACTOR)
FRAME = numpy.random.RandomState(0).standard_normal((64, 64))


def network(task):
    return FRAME


def load(net, weights):
    return net


def inference_step(net, task):
    def step(x):
        sums = net
        for _ in range(BEADS):
            sums = numpy.tanh(net @ sums / 64)
        return sums

    return step


if __name__ == "__main__":
    own = types.ModuleType("stele_worker.frameworks.abacus")
    own.__dict__.update({{name: value for name, value in vars(framework).items() if name[:2] != "__"}})
    own.versions = lambda: {{"abacus": "{version}", "beads": beads.VERSION}}
    recipe = types.ModuleType("stele_worker.recipes.gru.abacus")
    recipe.LAYOUT, recipe.network, recipe.load, recipe.inference_step = None, network, load, inference_step
    sys.modules[own.__name__], sys.modules[recipe.__name__] = own, recipe
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
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=1, help="default: %(default)s")
    parser.add_argument("--busy", action="store_true", help="beside a foreign process")
    parser.add_argument("--pins", action="store_true", help="a dependency is guilty")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        describe(folder, guilty_dependency=arguments.pins)
        stele(folder, "releases", "sync", "abacus")
        with neighbour(arguments.busy):
            found = [bisected(folder, seed, pins=arguments.pins) for seed in range(arguments.runs)]
    guilty = "beads 1.0 to 2.0" if arguments.pins else GUILTY
    wrong = [suspects for suspects in found if suspects and guilty not in suspects]
    named = [suspects for suspects in found if suspects == [guilty]]
    print(f"{len(named)} of {len(found)} runs named {guilty}, {len(wrong)} a wrong one")
    sys.exit(1 if wrong or (len(named) < len(found) and not arguments.busy) else 0)


def describe(folder, *, guilty_dependency):
    """Eight releases of abacus, two of beads, and the row."""
    for number in range(1, 9):
        version, slow = f"1.{number}", number >= 5 and not guilty_dependency
        source = ABACUS.format(beads=round(100 * (SLOWER if slow else 1)), version=version)
        wheel(folder / "wheels", "abacus", version, source, requires=["numpy", "beads"])
        place = folder / "wheels" / f"abacus-{version}-py3-none-any.whl"
        os.utime(place, (1.7e9 + number * DAY,) * 2)
    for version, factor in (("1.0", 1.0), ("2.0", SLOWER if guilty_dependency else 1.0)):
        wheel(folder / "wheels", "beads", version, f'FACTOR = {factor}\nVERSION = "{version}"\n')
    (folder / "rows").mkdir()
    (folder / "rows" / "abacus.toml").write_text(TOML % sys.version_info[:2])


def stele(folder, *asked):
    places = {
        "STELE_INDEX": folder / "wheels",
        "STELE_ENVIRONMENTS": folder / "rows",
        "STELE_CACHE": folder / "cache",
        "UV_FIND_LINKS": folder / "wheels",
    }
    surroundings = {**os.environ, **{name: str(place) for name, place in places.items()}}
    command = [sys.executable, "-m", "stele", *asked]
    return subprocess.run(command, cwd=folder, env=surroundings, check=False).returncode


def bisected(folder, seed, *, pins):
    """Whom one run suspects."""
    ends = ["abacus==1.1 beads==1.0", "abacus==1.8 beads==2.0"] if pins else ["1.1", "1.8"]
    report = folder / "found.json"
    report.unlink(missing_ok=True)
    options = ["--pins"] if pins else []
    options += ["--scale=study", "--budget=15m", f"--seed={seed}", f"--json={report}"]
    stele(folder, "bisect", "abacus", *ends, *options)
    return json.loads(report.read_text())["suspects"] if report.exists() else []


@contextlib.contextmanager
def neighbour(busy):
    """A foreign process that is always busy, where one is asked for."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"]) if busy else None
    try:
        yield
    finally:
        if process is not None:
            process.kill()
            process.wait()


if __name__ == "__main__":
    main()

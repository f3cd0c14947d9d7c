"""Kill nodes and commands of a fleet at random moments, and check that each launch has one Run at the end.

    python -m checks fleet/kills [--kills 20] [--seed 0] [--launches 60]

Several Ray nodes run on this machine. A worker with prepared answers takes the place of the framework. Kills are drawn
from the seed: of a node (its raylet, which has its object store), of a process that measures for Ray, or of the
command. A killed node is replaced, and a command that was killed is typed again.
"""

import argparse
import contextlib
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import nodes
import psutil

from stele.fleet import guard

SCRIPTED = Path(__file__).parents[2] / "tests/support/scripted_worker.py"
CELL = ("--framework=steady", "--task=gru", "--phase=train", "--scale=smoke")
KINDS = ("node", "worker", "command")
MOST = 600.0  # seconds


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in (("kills", 20), ("seed", 0), ("launches", 60), ("nodes", 3)):
        parser.add_argument(f"--{name}", type=int, default=value, metavar="N", help="default: %(default)s")
    return parser.parse_args()


def main():
    arguments = parse()
    with tempfile.TemporaryDirectory() as folder:
        describe(Path(folder))
        variables = {"STELE_ENVIRONMENTS": folder, "STELE_OFFLINE": "1"}
        with nodes.started(arguments.nodes, variables=variables) as cluster:
            campaign = Campaign(cluster, Path(folder), arguments)
            campaign.run()
    print(campaign.summary(), flush=True)
    remaining = guard.marked(str(cluster.folder))
    print(f"processes that remain: {len(remaining)}")
    return int(bool(campaign.faults or remaining))


def describe(folder):
    """Describe an environment whose launches take about a second."""
    script = json.dumps({"seconds": [0.5, *[0.1] * 20], "accuracy": 0.5, "takes": 1.0})
    lines = [
        'label = "Steady"',
        'framework = "scripted"',
        f"command = {json.dumps([sys.executable, str(SCRIPTED)])}",
    ]
    (folder / "steady.toml").write_text("\n".join([*lines, "[variables]", f"SCRIPT = {json.dumps(script)}"]))


class Campaign:
    """A command that is killed and typed again until all is measured."""

    def __init__(self, cluster, folder, arguments):
        self.cluster, self.folder, self.arguments = cluster, folder, arguments
        self.draw = random.Random(arguments.seed)
        self.kills, self.commands = [], 0
        self.seen, self.faults = {}, []
        self.process = None

    def run(self):
        until = time.monotonic() + MOST
        following = time.monotonic() + 5
        while time.monotonic() < until and self.commands < 2 * self.arguments.kills + 5:
            if self.process is None or self.process.poll() is not None:
                if self.process is not None and self.process.returncode == 0:
                    break
                self.start()
            if time.monotonic() > following and len(self.kills) < self.arguments.kills:
                self.kill(self.draw.choice(KINDS))
                following = time.monotonic() + self.draw.uniform(0.5, 3.0)
            self.look()
            time.sleep(0.2)
        else:
            self.faults.append("the command did not end")
        self.look()
        self.check()

    def start(self):
        self.commands += 1
        command = [sys.executable, "-m", "stele", "fleet", "run", *CELL, f"--address={self.cluster.address}",
                   f"--launches={self.arguments.launches}"]  # fmt: skip
        variables = {**self.cluster.variables, "STELE_CACHE": str(self.cluster.folder / "cache1")}
        self.process = subprocess.Popen(command, cwd=self.folder, env=variables)

    def kill(self, kind):
        self.kills.append(kind)
        print(f"kill {len(self.kills)}: {kind}", flush=True)
        if kind == "command":
            self.process.kill()
            self.process.wait()
        elif kind == "node":
            self.cluster.kill(self.draw.choice(self.cluster.alive))
            self.cluster.add()
        elif measuring := ray_workers(self.cluster):
            with contextlib.suppress(psutil.Error):
                self.draw.choice(measuring).kill()

    def look(self):
        """Note each new Run. One that changes was written twice."""
        for path in (self.folder / ".stele/runs").glob("*.json"):
            content = path.read_bytes()
            if self.seen.setdefault(path.name, content) != content:
                self.faults.append(f"{path.name} was written twice")

    def check(self):
        runs = {path.name for path in (self.folder / ".stele/runs").glob("*.json")}
        numbers = sorted(int(name.rpartition("-")[2].removesuffix(".json")) for name in runs)
        if numbers != list(range(1, self.arguments.launches + 1)):
            self.faults.append(f"the Runs are {numbers}")
        if lost := set(self.seen) - runs:
            self.faults.append(f"lost: {sorted(lost)}")

    def summary(self):
        counts = ", ".join(f"{self.kills.count(kind)} of a {kind}" for kind in KINDS)
        verdict = "; ".join(self.faults) or f"each of {self.arguments.launches} launches has one Run"
        return f"seed {self.arguments.seed}: {len(self.kills)} kills ({counts}), {self.commands} commands: {verdict}"


def ray_workers(cluster):
    """Return the processes of Ray that measure: they have a framework as a child."""
    parents = {parent_of(process) for process in psutil.process_iter() if nodes.variable(process, "SCRIPT")}
    marked = [process for process in guard.marked(str(cluster.folder)) if process.pid in parents]
    return sorted(marked, key=lambda process: process.pid)


def parent_of(process):
    with contextlib.suppress(psutil.Error):
        return process.ppid()
    return None


if __name__ == "__main__":
    sys.exit(main())

"""Several Ray nodes on this machine, each with a cache of its own, as different machines have."""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from stele.fleet import cluster, guard

TOKEN = "0" * 32
NODE = "STELE_NODE"  # a variable of the processes of a node


class Nodes:
    """A cluster on this machine. ``folder`` is short, because sockets have at most 107 characters."""

    def __init__(self, folder, *, places=1, variables=()):
        self.folder, self.places, self.more = Path(folder), places, dict(variables)
        self.port = free_port()
        self.alive, self.count = [], 0
        self.start("--head", "--node-ip-address=127.0.0.1", f"--port={self.port}", "--include-dashboard=false",
                   f"--temp-dir={folder}", places=0)  # fmt: skip

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    @property
    def variables(self):
        """The variables of commands that use this cluster."""
        token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": TOKEN}
        return {**os.environ, **token, "RAY_USAGE_STATS_ENABLED": "0", **self.more}

    def add(self):
        """Start a node, and return its number."""
        self.start(f"--address={self.address}", "--node-ip-address=127.0.0.1", places=self.places)
        self.alive.append(self.count)
        return self.count

    def start(self, *arguments, places):
        self.count += 1
        cache = self.folder / f"cache{self.count}"
        cache.mkdir(mode=0o700)
        labels = ",".join(f"{name}={value}" for name, value in cluster.labels().items())
        offered = f'--resources={{"{cluster.PLACE}": {places}}}' if places else "--resources={}"
        command = [sys.executable, "-m", "ray.scripts.scripts", "start", *arguments, "--disable-usage-stats",
                   "--num-cpus=1", f"--object-store-memory={80 * 2**20}", offered, f"--labels={labels}"]  # fmt: skip
        variables = {**self.variables, NODE: str(self.count), "STELE_CACHE": str(cache)}
        done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(done.stdout + done.stderr)

    def kill(self, number):
        """Kill the raylet of a node, which has its object store, too."""
        self.alive.remove(number)
        for raylet in self.raylets(number):
            raylet.kill()

    def raylets(self, number):
        return [
            process
            for process in psutil.process_iter()
            if is_raylet(process) and variable(process, NODE) == str(number)
        ]

    def close(self):
        while marked := [process for process in guard.marked(str(self.folder)) if process.pid != os.getpid()]:
            for process in marked:
                with contextlib.suppress(psutil.Error):
                    process.kill()
            time.sleep(0.1)


def free_port():
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return bound.getsockname()[1]


def is_raylet(process):
    with contextlib.suppress(psutil.Error):
        return Path(process.exe()).name == "raylet"
    return False


def variable(process, name):
    with contextlib.suppress(psutil.Error):
        return process.environ().get(name)
    return None


@contextlib.contextmanager
def started(count, *, places=1, variables=()):
    """Yield a cluster with so many nodes that measure, and end all of its processes."""
    folder = tempfile.mkdtemp(prefix="sf")
    nodes = Nodes(folder, places=places, variables=variables)
    try:
        for _ in range(count):
            nodes.add()
        yield nodes
    finally:
        nodes.close()
        shutil.rmtree(folder, ignore_errors=True)

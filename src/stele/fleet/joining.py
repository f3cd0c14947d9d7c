"""Make this machine a node of a Ray cluster. Nodes show the same token, so nobody else can send them work."""

import json
import os
import secrets
import subprocess
import sys
from itertools import dropwhile

from stele.errors import SteleError
from stele.fleet import cluster

PORT = "6379"
MODE, TOKEN = "RAY_AUTH_MODE", "RAY_AUTH_TOKEN"


def start_head(address: str) -> list[str]:
    """Start the first node at ``IP`` or ``IP:PORT``. Return what to do on the others.

    Raises SteleError if Ray does not start.
    """
    ip, _, port = address.partition(":")
    port = port or PORT
    token = os.environ.setdefault(TOKEN, secrets.token_hex(32))
    os.environ.setdefault(MODE, "token")
    start("--head", f"--node-ip-address={ip}", f"--port={port}", "--include-dashboard=false")
    export = f"export {MODE}={os.environ[MODE]} {TOKEN}={token}"
    return [
        f"This machine is the first node. Its type is {cluster.processor_type()}.",
        f"On this machine, before other commands:  {export}",
        f"To add a node, run there:  {export}; stele fleet join {ip}:{port}",
    ]


def start_node(address: str) -> list[str]:
    """Add this machine to the cluster of the first node. Raises SteleError if that fails."""
    host, _, port = address.rpartition(":")
    if not (host and port.isdecimal()):
        raise SteleError(f"{address} is not an address such as 10.0.0.5:{PORT}. Write IP:PORT of the first node.")
    if TOKEN not in os.environ and os.environ.get(MODE) != "disabled":
        raise SteleError(
            f"{TOKEN} is not set. Copy the whole line that `stele fleet join --head` printed on the first machine."
        )
    start(f"--address={address}")
    return [f"This machine is a node of {address}. Its type is {cluster.processor_type()}. It leaves with: ray stop"]


def start(*arguments: str) -> None:
    """Call ``ray start``, with what this machine offers."""
    cluster.imported()
    command = [
        sys.executable,
        "-m",
        "ray.scripts.scripts",
        "start",
        *arguments,
        "--disable-usage-stats",
        f"--resources={json.dumps(cluster.resources())}",
        f"--labels={','.join(f'{name}={value}' for name, value in cluster.labels().items())}",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        with cluster.explained("Ray does not start on this machine"):
            raise RuntimeError(reason_in(done.stdout + done.stderr))


def reason_in(output: str) -> str:
    """Return the last line that says something; of different versions, all from the first line about them."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    about_versions = list(dropwhile(lambda line: "mismatch" not in line.lower(), lines))
    return " ".join(about_versions or lines[-1:]) or "it printed nothing"

"""Is a recipe slower than public code for the same mathematics in the same framework? Writes docs/results/peers.md.

    python -m studies peers [--peer ENVIRONMENT/PEER/TASK/PHASE ...] [--launches N]

Each launch starts a worker, as the suite does, and ``loop.py``; both take turns step by step. A row has the median of
the launches, the step of the recipe over that of the public code, with its 95 % interval.
"""

import os
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import NamedTuple

from checks.harness import LAUNCHES, SETTINGS, measure_ratio
from stele import environments, statistics
from stele.environments import builds
from stele.measuring import lock, machine, measure
from stele.measuring.run import Options
from stele.report import page
from studies import launches

PAGE = Path(__file__).parents[2] / "docs" / "results" / "peers.md"
FILE = Path(".stele/peers.jsonl")
KEYS = ("peer", "ratio")  # of a line
LOOP = Path(__file__).with_name("loop.py")
NAMES = {
    "torch": "plain PyTorch, as its tutorials",
    "torchvision": "torchvision, its model and reference script",
    "transformers": "transformers, its model",
    "flax": "flax.linen and optax",
    "keras": "Keras, train_on_batch and predict_on_batch",
    "paddle": "paddle.vision.models, as documented",
    "mxnet": "Gluon's tutorials, hybridized",
    "chainer": "Chainer's examples",
}
STEPS = 16  # of a launch; the ratio differs more between launches than between steps
LIMIT = 1.02  # a recipe that is this much slower, certainly, is named


class Peer(NamedTuple):
    environment: str
    name: str
    task: str
    phase: str

    def __str__(self) -> str:
        return "/".join(self)


PUBLIC = (
    ("torch", "torch", ("cnn", "gru")),
    ("torch", "torchvision", ("resnet50", "mobilenetv2")),
    ("torch", "transformers", ("encoder", "decoder")),
    ("jax", "flax", ("cnn", "gru")),
    *((f"keras-{backend}", "keras", ("cnn", "gru")) for backend in ("jax", "tensorflow", "torch")),
    ("tensorflow", "keras", ("cnn", "gru")),
    ("paddle", "paddle", ("resnet50", "mobilenetv2")),
    ("mxnet-gluon", "mxnet", ("cnn", "gru")),
    ("chainer", "chainer", ("cnn", "gru")),
)
PEERS = tuple(
    Peer(environment, name, task, phase)
    for phase in ("train", "infer")
    for environment, name, of_tasks in PUBLIC
    for task in of_tasks
)


def start_loop(peer: Peer) -> subprocess.Popen[str]:
    """Start the loop of a peer in the interpreter of its environment; Keras runs on the backend of the environment."""
    environment = environments.load(peer.environment)
    backend = {"KERAS_BACKEND": "tensorflow"} if peer.environment == "tensorflow" else {}
    return subprocess.Popen(
        [builds.command(environment)[0], str(LOOP), *peer[1:], str(SETTINGS.threads)],
        env={**os.environ, **builds.variables(environment), **backend, **SETTINGS.variables()},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def launch(peer: Peer) -> float:
    """Return the ratio of one launch of both."""
    fields, _ = measure.inputs(peer.task)
    plan = measure.Plan(task=peer.task, phase=peer.phase, scale="gate", options=Options(steps=STEPS), **fields)
    return measure_ratio(peer.environment, plan, start_loop(peer))


def load() -> dict[str, list[float]]:
    """Return the ratios that are stored, by peer."""
    return launches.load(FILE, *KEYS)


def row(peer: Peer, ratios: list[float]) -> list[str]:
    ratio = statistics.median(ratios)
    slower = ratio.low is not None and ratio.low > LIMIT
    answer = "the recipe is slower" if slower else "no"
    code = peer.environment, peer.task, peer.phase, NAMES[peer.name]
    return [*code, launches.interval(ratio), str(len(ratios)), answer]


def markdown(stored: dict[str, list[float]]) -> str:
    facts = machine.facts()
    rows = [row(peer, stored[str(peer)]) for peer in PEERS if str(peer) in stored]
    header = (
        "environment",
        "task",
        "phase",
        "public code",
        "recipe / public code",
        "launches",
        f"slower than {LIMIT:g}",
    )
    return (
        f"{page.table(header, rows)}\n\nMeasured until {date.today()} on {facts.processor}, "
        f"{facts.processors} processors, {SETTINGS.threads} thread, scale gate."
    )


def main() -> int:
    parser = launches.parser(__doc__, LAUNCHES)
    parser.add_argument("--peer", action="append", choices=list(map(str, PEERS)), metavar="PEER", help="default: all")
    arguments = parser.parse_args()
    with lock.machine("tox -e studies -- peers", wait=True, say=print):
        chosen = [peer for peer in PEERS if str(peer) in (arguments.peer or [str(peer)])]
        launches.measure(FILE, KEYS, chosen, arguments.launches, launch)
    page.fill(PAGE, markdown(load()))
    return 0


if __name__ == "__main__":
    sys.exit(main())

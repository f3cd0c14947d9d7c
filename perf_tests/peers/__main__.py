"""Is a recipe slower than public code for the same mathematics in the same framework? Writes docs/peers.md.

    python perf_tests/peers [--peer ENVIRONMENT/PEER/TASK ...] [--launches N]      or: tox -e peers

Each launch starts a worker, as the suite does, and ``loop.py``; both take turns step by step. A row has the median of
the launches, the step of the recipe over that of the public code, with its 95 % interval.
"""

import argparse
import os
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parents[1]))

from harness import LAUNCHES, SETTINGS, measure_ratio

from fixtures import launches
from stele import environments, statistics
from stele.environments import builds
from stele.measuring import lock, machine, measure
from stele.report import page

PAGE = Path(__file__).parents[2] / "docs" / "peers.md"
FILE = Path(".stele/peers.jsonl")
KEYS = ("peer", "ratio")  # of a line
LOOP = Path(__file__).with_name("loop.py")
NAMES = {
    "torch": "plain PyTorch, as its tutorials",
    "torchvision": "torchvision, its model and reference script",
    "transformers": "transformers, BertForSequenceClassification",
    "flax": "flax.linen and optax",
    "keras": "Keras, train_on_batch",
    "paddle": "paddle.vision.models, and the documented loop",
    "mxnet": "Gluon's tutorials, hybridized",
    "chainer": "Chainer's examples",
}
LIMIT = 1.02  # a recipe that is this much slower, certainly, is named


class Peer(NamedTuple):
    environment: str
    name: str
    task: str

    def __str__(self) -> str:
        return "/".join(self)


PEERS = (
    Peer("torch", "torch", "cnn"),
    Peer("torch", "torch", "gru"),
    Peer("torch", "torchvision", "resnet50"),
    Peer("torch", "transformers", "encoder"),
    Peer("jax", "flax", "cnn"),
    Peer("jax", "flax", "gru"),
    *(
        Peer(f"keras-{backend}", "keras", task)
        for backend in ("jax", "tensorflow", "torch")
        for task in ("cnn", "gru")
    ),
    *(Peer("tensorflow", "keras", task) for task in ("cnn", "gru")),
    *(Peer("paddle", "paddle", task) for task in ("resnet50", "mobilenetv2")),
    *(Peer("mxnet-gluon", "mxnet", task) for task in ("cnn", "gru")),
    *(Peer("chainer", "chainer", task) for task in ("cnn", "gru")),
)


def start_loop(peer: Peer) -> subprocess.Popen[str]:
    """Start the loop of a peer in the interpreter of its environment; Keras runs on the backend of the environment."""
    environment = environments.load(peer.environment)
    backend = {"KERAS_BACKEND": "tensorflow"} if peer.environment == "tensorflow" else {}
    return subprocess.Popen(
        [builds.command(environment)[0], str(LOOP), peer.name, peer.task, str(SETTINGS.threads)],
        env={**os.environ, **builds.variables(environment), **backend, **SETTINGS.variables()},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def launch(peer: Peer) -> float:
    """Return the ratio of one launch of both."""
    fields, _ = measure.inputs(peer.task)
    plan = measure.Plan(task=peer.task, phase="train", scale="gate", **fields)
    return measure_ratio(peer.environment, plan, start_loop(peer))


def load() -> dict[str, list[float]]:
    """Return the ratios that are stored, by peer."""
    return launches.load(FILE, *KEYS)


def row(peer: Peer, ratios: list[float]) -> list[str]:
    ratio = statistics.median(ratios)
    slower = ratio.low is not None and ratio.low > LIMIT
    answer = "the recipe is slower" if slower else "no"
    return [peer.environment, peer.task, NAMES[peer.name], launches.interval(ratio), str(len(ratios)), answer]


def markdown(stored: dict[str, list[float]]) -> str:
    facts = machine.facts()
    rows = [row(peer, stored[str(peer)]) for peer in PEERS if str(peer) in stored]
    header = (
        "environment",
        "task",
        "public code",
        "recipe / public code",
        "launches",
        f"slower than {LIMIT:g}",
    )
    return (
        f"{page.table(header, rows)}\n\nMeasured until {date.today()} on {facts['processor']}, "
        f"{facts['processors']} processors, {SETTINGS.threads} thread, training at scale gate."
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--peer", action="append", choices=list(map(str, PEERS)), metavar="PEER", help="default: all"
    )
    parser.add_argument("--launches", type=int, default=LAUNCHES, metavar="N", help="default: %(default)s")
    arguments = parser.parse_args()
    with lock.machine("tox -e peers", wait=True, say=print):
        chosen = [peer for peer in PEERS if str(peer) in (arguments.peer or [str(peer)])]
        launches.measure(FILE, KEYS, chosen, arguments.launches, launch)
    page.fill(PAGE, markdown(load()))
    return 0


if __name__ == "__main__":
    sys.exit(main())

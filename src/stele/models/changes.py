"""``--changed REVISION``: the pins of frameworks that differ between a git revision and the working tree."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from stele.environments import revisions
from stele.environments.revisions import Change

# packages of which a change is gated; those of one line are changed together
TOGETHER = (
    ("torch", "torchvision", "timm"),
    ("transformers",),
    ("jax", "jaxlib", "flax", "optax"),
    ("tensorflow", "tensorflow-cpu"),
    ("keras",),
    ("paddlepaddle", "paddlepaddle-gpu"),
    ("mxnet",),
    ("chainer",),
    ("onnxruntime",),
    ("openvino",),
)
FRAMEWORKS = frozenset(name for names in TOGETHER for name in names)


class Pair(NamedTuple):
    """OLD and NEW of one gate, as they could be typed; in NEW the pins of ``replaced`` are changed."""

    old: str
    new: str
    summary: str  # ``jax 0.9.2 to 0.10.2 in requirements.txt``
    name: str  # of the first package, or of the file
    replaced: tuple[Change, ...] = ()


def pairs(revision: str, folder: Path, *, whole_files: bool, extras: Sequence[str] = ()) -> list[Pair]:
    """Return the gates for the pins that changed; none if no pin did.

    Without ``whole_files``, packages that belong together make one gate of requirements. With it, there is one gate
    for each changed file, because a model needs all packages of the file; only the pins of frameworks are changed.
    Raises SteleError for an unknown revision.
    """
    changed = revisions.changed_pins(revision, folder, FRAMEWORKS, extras)
    if whole_files:
        names = sorted({change.file for change in changed})
        return [of_file(name, revision, [one for one in changed if one.file == name]) for name in names]
    groups = ([one for one in changed if one.package in names] for names in TOGETHER)
    return [of_pins(group) for group in groups if group]


def of_pins(changed: list[Change]) -> Pair:
    old = " ".join(f"{change.package}=={change.old}" for change in changed)
    new = " ".join(f"{change.package}=={change.new}" for change in changed)
    return Pair(old, new, summary(changed), changed[0].package)


def of_file(name: str, revision: str, changed: list[Change]) -> Pair:
    old = f"{name}@{revision}"
    return Pair(old, old, summary(changed), name, tuple(changed))


def summary(changed: Iterable[Change]) -> str:
    return ", ".join(f"{one.package} {one.old} to {one.new} in {one.file}" for one in changed)

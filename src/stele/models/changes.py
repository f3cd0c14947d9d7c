"""``--changed REVISION``: the frameworks that differ between a git revision and the working tree, as pairs to gate."""

import dataclasses
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from stele.environments import comparison
from stele.environments.comparison import Change, Compared, Comparison, Ungated
from stele.environments.lockfiles import Locked
from stele.errors import SteleError
from stele.models.arms import Extras
from stele.text import without_passwords

# packages of which a change is gated; those of one line are changed together. Each is a regular expression
TOGETHER = (
    ("torch", "torchvision", "torchaudio", "torch-xla", "timm"),
    ("transformers",),
    ("jax", "jaxlib", r"jax-(cuda|rocm)\d*-(plugin|pjrt)", "jax-metal", "libtpu", "flax", "optax"),
    (
        "tensorflow",
        r"tensorflow-(cpu|gpu|intel|macos|metal)",
        r"tf-nightly(-cpu|-gpu)?",
        "tf-keras(-nightly)?",
    ),
    ("keras", "keras-nightly"),
    (r"paddlepaddle(-gpu)?",),
    (r"mxnet(-\w+)?",),
    ("chainer",),
    ("theano", "lasagne"),
    (r"cntk(-gpu)?",),
    (r"onnxruntime(-\w+)?",),
    ("openvino",),
)
FRAMEWORKS = re.compile("|".join(name for names in TOGETHER for name in names), re.I)


class Pair(NamedTuple):
    """OLD and NEW of one gate: their names, and what they install."""

    old: str
    new: str
    contents: tuple[Locked, Locked]
    summary: str  # ``jax 0.9.2 to 0.10.2 in requirements.txt``
    name: str  # of the first package, or of the file
    packages: frozenset[str]  # that changed
    whole: Locked | None = None  # all of NEW's file, where only the changed packages differ in NEW


class Changed(NamedTuple):
    """What was compared, the gates of what changed, and what cannot be gated."""

    files: list[str]
    pairs: list[Pair]
    ungated: list[str]
    blocked: bool  # whether something that is installed has no gate


def find(revision: str, folder: Path, extras: Extras, *, whole_files: bool) -> Changed:
    """Return the gates for what changed in the whole repository of a folder.

    There is one gate for each changed file. Without ``whole_files`` it is one for each framework in a file: a built-in
    task measures one framework. Gates of equal packages are one. Raises SteleError for an unknown revision, and if
    there is nothing to compare.
    """
    python = extras.python if re.fullmatch(r"3\.\d+", extras.python or "") else None
    compared = comparison.compare(
        revision, folder, FRAMEWORKS, extras.names, python=python, allow_vcs=extras.allow_vcs
    )
    pairs: list[Pair] = []
    for one in compared.files:
        try:
            if one.changes:
                pairs += of_file(compared, one, extras) if whole_files else of_pins(one)
        except SteleError as error:
            one.ungated.append(Ungated("", str(error), blocks=True))
    ungated = [each for one in compared.files for each in one.ungated]
    gated = {package for pair in pairs for package in pair.packages}
    blocked = any(each.blocks for each in ungated) or not gated
    return Changed(
        compared.names(), merged(pairs), [each.message for each in ungated], bool(ungated) and blocked
    )


def of_pins(one: Compared) -> list[Pair]:
    """Return a gate for the changed packages of each framework in a file."""
    assert one.old is not None and one.new is not None
    pairs = []
    for names in TOGETHER:
        group = [change for change in one.changes if re.fullmatch("|".join(names), change.package)]
        if group:
            old, new = tuple(change.old for change in group), tuple(change.new for change in group)
            contents = (
                Locked(old, None, "requirements", options=one.old.options),
                Locked(new, None, "requirements", options=one.new.options),
            )
            packages = frozenset(change.package for change in group)
            pairs.append(Pair(named(old), named(new), contents, summary(group), group[0].package, packages))
    return pairs


def named(requirements: Iterable[str]) -> str:
    return without_passwords(" ".join(requirements))


def of_file(compared: Comparison, one: Compared, extras: Extras) -> list[Pair]:
    """Return the gate of a file in the revision, and of the same file with the lines of the changed packages as now."""
    old, new = (
        compared.read(one, new=is_new, allow_vcs=extras.allow_vcs, extras=extras.names)
        for is_new in (False, True)
    )
    packages = frozenset(change.package for change in one.changes)
    replaced = dataclasses.replace(
        old,
        requirements=with_lines(old.requirements, new.requirements, packages),
        constraints=with_lines(old.constraints, new.constraints, packages),
        options=new.options,
        messages=new.messages,
    )
    name = f"{one.old_name}@{compared.revision}"
    changes = ", ".join(f"{change.package} {shown(change.package, change.new)}" for change in one.changes)
    label = f"{name} with {changes}"
    return [Pair(name, label, (old, replaced), summary(one.changes), one.name, packages, new)]


def with_lines(old: Iterable[str], new: Iterable[str], packages: frozenset[str]) -> tuple[str, ...]:
    """Return the lines of ``old`` with those of ``new`` for some packages."""
    kept = [line for line in old if canonicalize_name(Requirement(line).name) not in packages]
    return (*kept, *(line for line in new if canonicalize_name(Requirement(line).name) in packages))


def merged(pairs: Iterable[Pair]) -> list[Pair]:
    """Return the gates, with one for those that install the same; its summary names all files."""
    found: dict[object, Pair] = {}
    for pair in pairs:
        old, new = pair.contents
        key = tuple(
            (frozenset(one.requirements), frozenset(one.constraints), one.options, one.python)
            for one in (old, new)
        )
        first = found.setdefault(key, pair)
        if first is not pair:
            what, _, file = pair.summary.rpartition(" in ")
            more = f" and {file}" if first.summary.startswith(f"{what} in ") else f"; {pair.summary}"
            found[key] = first._replace(summary=first.summary + more)
    return list(found.values())


def summary(changes: Sequence[Change]) -> str:
    """Return "jax 0.9.2 to 0.10.2, jaxlib 0.9.2 to 0.10.2 in requirements.txt"."""
    by_file: dict[str, list[str]] = {}
    for one in changes:
        old, new = shown(one.package, one.old), shown(one.package, one.new)
        text = f"{one.package} {old} from another index" if old == new else f"{one.package} {old} to {new}"
        by_file.setdefault(one.file, []).append(text)
    return "; ".join(f"{', '.join(texts)} in {file}" for file, texts in by_file.items())


def shown(package: str, requirement: str) -> str:
    """Return what a requirement says beside the name of the package: ``0.10.2``, ``<0.11,>=0.10``."""
    rest = requirement.removeprefix(package).removeprefix("==").removeprefix(" @ ")
    return without_passwords(rest) or "any version"

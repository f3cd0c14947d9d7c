"""``--changed REVISION``: the frameworks that differ between a git revision and the working tree, as pairs to gate."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from stele.environments import comparison
from stele.environments.arms import Extras
from stele.environments.comparison import Change, Compared, Comparison, Ungated
from stele.environments.lockfiles import Locked
from stele.errors import SteleError
from stele.text import first_of, without_passwords

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
SHOWN = 8  # packages in a line
FRAMEWORKS = re.compile("|".join(name for names in TOGETHER for name in names), re.I)


class Pair(NamedTuple):
    """OLD and NEW of one gate: their names, and what they install."""

    old: str
    new: str
    contents: tuple[Locked, Locked]
    summary: str  # ``jax 0.9.2 to 0.10.2 in requirements.txt``
    name: str  # of the first package, or of the file
    packages: frozenset[str]  # that changed

    @property
    def is_of_framework(self) -> bool:
        """Whether a framework changed, and not only other packages."""
        return any(map(FRAMEWORKS.fullmatch, self.packages))


class Changed(NamedTuple):
    """What was compared, the gates of what changed, and what cannot be gated."""

    files: list[str]
    pairs: list[Pair]
    ungated: list[str]
    blocked: bool  # whether something that is installed has no gate
    notes: list[str]  # what was not compared, and other packages that changed and that no gate measures
    paths: list[Path]  # the files that were read
    unread: bool = False  # whether files that cannot be read are all that has no gate


def find(revision: str, folder: Path, extras: Extras, *, whole_files: bool) -> Changed:
    """Return the gates for what changed in the whole repository of a folder.

    There is one gate for each changed file. Without ``whole_files`` it is one for each framework in a file: a built-in
    task measures one framework. Gates of equal packages are one. Raises SteleError for an unknown revision, and if
    there is nothing to compare.
    """
    python = extras.python if re.fullmatch(r"3\.\d+", extras.python or "") else None
    compared = comparison.compare(revision, folder, FRAMEWORKS, extras.names, python=python, allow_vcs=extras.allow_vcs)
    pairs: list[Pair] = []
    notes = [note for file in compared.files for note in file.notes]
    packages_in: dict[str, set[str]] = {}  # by file: the packages in NEW
    for file in compared.files:
        gated = [*file.changes, *(file.others if whole_files and is_environment(file) else [])]
        if file.others and not (whole_files and gated):
            notes.append(not_gated(file, whole_files=whole_files))
        try:
            if gated:
                pairs_of_file = of_file(compared, file, gated, extras) if whole_files else of_pins(file, python, extras)
                packages_in[file.name] = {
                    name for pair in pairs_of_file for name in names_of(pair.contents[1].requirements)
                }
                pairs += pairs_of_file
        except SteleError as error:
            file.ungated.append(Ungated("", str(error), blocks=True))
    ungated = [(file, each) for file in compared.files for each in file.ungated]
    missing = any(
        each.blocks or (each.added and each.package not in packages_in.get(file.name, ())) for file, each in ungated
    )
    return Changed(
        compared.names(),
        merged(pairs),
        [each.message for _, each in ungated],
        missing or (bool(ungated) and not any(pair.is_of_framework for pair in pairs)),
        notes,
        compared.paths(),
        all(file.failure is not None for file, _ in ungated),
    )


def is_environment(file: Compared) -> bool:
    """Return whether a model may be run with what a file names, in the revision and in the working tree."""
    sides = [comparison.packages_of(locked) for locked in (file.old, file.new)]
    frameworks = [any(map(FRAMEWORKS.fullmatch, names)) for names in sides]
    return all(sides) and file.is_environment and (all(frameworks) or not any(frameworks))


def names_of(requirements: Iterable[str]) -> set[str]:
    return {canonicalize_name(Requirement(line).name) for line in requirements if line}


def of_pins(file: Compared, python: str | None, extras: Extras) -> list[Pair]:
    """Return a gate for each framework in a file that changed, with all its packages that the file names.

    Raises SteleError if one of them is installed from a URL, and this is not allowed.
    """
    pairs = []
    for names in TOGETHER:
        group = [change for change in file.changes if re.fullmatch("|".join(names), change.package)]
        if group:
            old, new = (of_framework(file, locked, names, python, extras) for locked in (file.old, file.new))
            packages = frozenset(name for change in group for name in names_of((change.old, change.new)))
            arms = named(old.requirements), named(new.requirements)
            pairs.append(Pair(*arms, (old, new), summary(group), group[0].package, packages))
    return pairs


def of_framework(
    file: Compared, locked: Locked | None, names: Sequence[str], python: str | None, extras: Extras
) -> Locked:
    """Return what a file requires of the packages of a framework. Raises SteleError for a URL that is not allowed."""
    assert locked is not None
    requirements = comparison.requirements_of(locked, names, python)
    url = next((line for line in requirements if " @ " in line), None)
    if url and not extras.allow_vcs:
        line = without_passwords(url)
        raise SteleError(f"{file.name}: {line!r} is installed from a URL. Pass --allow-vcs to gate this change.")
    hashes = {name: locked.hashes[name] for name in names_of(requirements) & locked.hashes.keys()}
    return Locked(requirements, None, "requirements", options=locked.options, hashes=hashes)


def not_gated(file: Compared, *, whole_files: bool) -> str:
    """Return a line about the packages of a file that changed and that no gate measures."""
    why = (
        "No model is run with this file alone: it names no framework, or only one side has it."
        if whole_files
        else "The built-in tasks do not use them; a gate with --model measures the complete file."
    )
    return f"changed, but not gated: {summary(file.others)}. {why}"


def named(requirements: Iterable[str]) -> str:
    return without_passwords(" ".join(requirements))


def of_file(compared: Comparison, file: Compared, changes: Sequence[Change], extras: Extras) -> list[Pair]:
    """Return the gate of a file: all that it names in the revision, and all that it names now.

    Raises SteleError if one of them cannot be read completely.
    """
    old, new = (
        compared.read(file, new=is_new, allow_vcs=extras.allow_vcs, extras=extras.names) for is_new in (False, True)
    )
    packages = frozenset(name for change in changes for name in names_of((change.old, change.new)))
    name = f"{file.old_name}@{compared.revision}"
    texts = [
        f"{each.package} {shown(each.package, each.new)}" if each.new else f"no {each.package}" for each in changes
    ]
    label = f"{file.name} with {first_of(texts, SHOWN)}"  # a report is headed by it
    return [Pair(name, label, (old, new), summary(changes), file.name, packages)]


def merged(pairs: Iterable[Pair]) -> list[Pair]:
    """Return the gates, with one for those that install the same; its summary names all files."""
    pairs_by_content: dict[object, Pair] = {}
    for pair in pairs:
        old, new = pair.contents
        key = tuple(
            (
                frozenset(locked.requirements),
                frozenset(locked.constraints),
                locked.options,
                locked.python,
                frozenset(locked.hashes.items()),
            )
            for locked in (old, new)
        )
        first = pairs_by_content.setdefault(key, pair)
        if first is not pair:
            what, _, file = pair.summary.rpartition(" in ")
            more = f" and {file}" if first.summary.startswith(f"{what} in ") else f"; {pair.summary}"
            pairs_by_content[key] = first._replace(summary=first.summary + more)
    return list(pairs_by_content.values())


def summary(changes: Sequence[Change]) -> str:
    """Return "jax 0.9.2 to 0.10.2, jaxlib 0.9.2 to 0.10.2 in requirements.txt"."""
    by_file: dict[str, list[str]] = {}
    for change in changes:
        by_file.setdefault(change.file, []).append(described(change))
    return "; ".join(f"{first_of(texts, SHOWN)} in {file}" for file, texts in by_file.items())


def described(change: Change) -> str:
    """Return a change as text: "jax 0.9.2 to 0.10.2", "torch 2.13.0 with other hashes", "einops 0.8.1 added"."""
    before, after = (line and canonicalize_name(Requirement(line).name) for line in (change.old, change.new))
    old, new = shown(before, change.old), shown(after, change.new)
    if not (change.old and change.new):
        return f"{change.new} added" if change.new else f"{change.old} removed"
    other_name = "" if before == after else f"{after} "
    return f"{after} {new} {change.how}" if change.old == change.new else f"{before} {old} to {other_name}{new}"


def shown(package: str, requirement: str) -> str:
    """Return what a requirement says beside the name of the package: ``0.10.2``, ``<0.11,>=0.10``."""
    rest = requirement.removeprefix(package).removeprefix("==").removeprefix(" @ ")
    return without_passwords(rest) or "any version"

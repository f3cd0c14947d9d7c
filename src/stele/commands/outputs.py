"""The files that the options of a command name to be written: what is checked before anything is measured.

The functions receive the values of all options by name, as ``options.flat`` returns them.
"""

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from stele import files
from stele.environments import lockfiles, revisions
from stele.errors import SteleError
from stele.measuring.content import ALL
from stele.report import page

FILES = ("json", "markdown", "junit", "html", "openmetrics", "plot", "bundle", "write")
FOLDERS = ("csv", "dawnbench", "mlperf", "site")  # one that does not exist is made
PAGE = "write"  # exists: a part of it is replaced
MERGED = ("merge",)  # stele parity --merge adds to a file
CODE = ".py"
OWN = Path(".stele")
DEFAULTS = (OWN / "nightly.md", OWN / "site")  # of stele nightly, and of stele releases


def check(values: Mapping[str, Any]) -> None:
    """Raise SteleError if an output cannot be written, is written twice, or is a file that the command reads."""
    outputs = dict(of(values))
    for option, path in outputs.items():
        check_place(option, path)
    replaced = {option: path for option, path in outputs.items() if files.is_replaceable(path)}
    for option, path in replaced.items():
        for other, earlier in replaced.items():
            if other == option:
                break
            if files.same(path, earlier):
                raise SteleError(f"{option} {path} and {other} {earlier} are the same file. Name two files.")
    refuse(values, (path for name, value in values.items() for path in inputs(name, value)))


def of(values: Mapping[str, Any]) -> Iterator[tuple[str, Path]]:
    """Yield the option and the path of each file and folder that is written."""
    for name in (*FILES, *FOLDERS):
        path = values.get(name)
        if isinstance(path, Path):
            yield f"--{name}", path


def check_place(option: str, path: Path) -> None:
    """Raise SteleError if nothing can be written there."""
    if path in DEFAULTS:
        OWN.mkdir(exist_ok=True)
    elif is_record(path):
        raise SteleError(f"{option} {path} would replace a record of Stele, or lie among them. Name another file.")
    try:
        if option.removeprefix("--") in FOLDERS:
            files.check_writable_folder(path)
        else:
            files.check_writable(path)
    except SteleError as error:
        raise SteleError(f"{option}: {error}") from None
    if option == f"--{PAGE}":
        page.check(path)


def is_record(path: Path) -> bool:
    """Return whether a path leads below a folder ``.stele``, other than one in which the user works."""
    target, here = Path(os.path.realpath(path)), Path(os.path.realpath("."))
    return OWN.name in (target.relative_to(here) if target.is_relative_to(here) else target).parts[:-1]


def refuse(values: Mapping[str, Any], read: Iterable[Path], within: Iterable[Path] = ()) -> None:
    """Raise SteleError if an output would replace one of the files that are read, or Python code.

    Also if it lies below one of the folders ``within``.
    """
    for folder in within:
        for option, path in of(values):
            if is_below(path, folder):
                raise SteleError(f"{option} {path} is in {folder}, which this command reads. Name another place.")
    outputs = [(option, path) for option, path in of(values) if files.is_file(path)]
    if not outputs:
        return
    for source in read:
        for option, path in outputs:
            if files.same(path, source) or (source.name == ALL and files.same(path.parent, source.parent)):
                raise SteleError(
                    f"{option} {path} would replace {source}, which this command reads. Name another file."
                )
    for option, path in outputs:
        if Path(os.path.realpath(path)).suffix == CODE:
            raise SteleError(f"{option} {path} would replace a file of Python code. Name another file.")


def is_below(path: Path, folder: Path) -> bool:
    """Return whether a path is below a folder, by its name or by that to which links lead."""
    names = (files.without_dots(path), Path(os.path.realpath(path)))
    return any(name.is_relative_to(place) for name in names for place in (folder, Path(os.path.realpath(folder))))


def inputs(name: str, value: Any) -> Iterator[Path]:
    """Yield the files that an argument may name: ``m.py:model``, ``uv.lock@main``, a folder with a model, a list."""
    if name in (*FILES, *FOLDERS, *MERGED, "typed"):
        return
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from inputs(name, item)
    elif isinstance(value, (str, Path)):
        text = str(value)
        for part in (text, text.rpartition(":")[0], text.partition(":")[2], text.rpartition("@")[0]):
            if part:
                yield from of_input(files.absolute(part))


def of_input(path: Path) -> Iterator[Path]:
    """Yield a file with those that it includes, or what a folder has of a project, an environment or a model."""
    if files.is_file(path):
        yield path
        if lockfiles.is_lockfile(str(path)):
            yield from included(path)
    elif files.is_folder(path):
        yield from (path / name for name in ("pyproject.toml", "pyvenv.cfg", "config.json"))


def included(path: Path) -> list[Path]:
    """Return the files that a lock file includes, or that lie beside it and complete it."""
    paths = []
    read = revisions.sibling_reader(path, None)

    def noted(name: str) -> str:
        paths.append(path.parent / name)
        return read(name)

    with contextlib.suppress(SteleError):  # the command says what is wrong with it
        lockfiles.read(str(path), revisions.read_text(path), noted, allow_vcs=True)
    return paths

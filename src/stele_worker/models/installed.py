"""Which files of an environment the host compares for each package; all others there are compared when they are read.

The host takes the list of files of a package, RECORD. Of a package without one, it takes the modules.
"""

import csv
import functools
import os
import sys
import sysconfig

SHARED = ("site-packages", "dist-packages")  # folders of many packages
SOURCES = (".py", ".so")
# where Python looks for packages before the user's code changes it, as the host sees it
FOLDERS = tuple(os.path.abspath(folder) for folder in sys.path if folder)
STANDARD = tuple({os.path.join(os.path.abspath(sysconfig.get_path(name)), "") for name in ("stdlib", "platstdlib")})
PROGRAMS = tuple(
    os.path.join(os.path.abspath(sys.base_prefix), *part)
    for part in (("bin", ""), ("lib", "libpython"), ("lib64", "libpython"))
)


def is_in_packages(path):
    parts = path.split(os.sep)
    return any(name in parts for name in SHARED)


def is_standard(path):
    """Return whether a file is a part of Python's standard library."""
    return path.startswith(STANDARD) and not is_in_packages(path)


def has(path):
    """Return whether a file is a part of Python, or of a package whose files the host compares."""
    if path.startswith(PROGRAMS) or is_standard(path):
        return True
    paths, information, modules = owned()
    return path in paths or path.startswith(information) or (path.endswith(SOURCES) and path.startswith(modules))


@functools.lru_cache(maxsize=None)
def owned():
    """Return the files of packages, the beginnings of what describes packages, and those of modules without a list."""
    paths, information, modules = set(), set(), set()
    for folder in FOLDERS:
        for place in {folder, os.path.realpath(folder)}:  # the system names files without links
            for name in names_in(place):
                if not name.endswith((".dist-info", ".egg-info")):
                    continue
                about = os.path.join(place, name)
                record = text(os.path.join(about, "RECORD"))
                paths.update(listed_in(record, place))
                if record or is_in_packages(place):  # beside modules of the user, there may be a description, too
                    information.add(os.path.join(about, ""))
                if not record and is_in_packages(place):
                    names = text(os.path.join(about, "top_level.txt")).split() or [name.split("-")[0]]
                    modules.update(os.path.join(place, module) + end for module in names for end in (os.sep, "."))
        if folder.endswith(".egg"):
            modules.add(os.path.join(folder, ""))
    return paths, tuple(information), tuple(modules)


def listed_in(record, place):
    """Yield the absolute paths in a RECORD of a package in the folder ``place``."""
    lines = record.splitlines()
    rows = csv.reader(lines) if '"' in record else (line.split(",", 1) for line in lines)
    for row in rows:
        path = place + os.sep + row[0] if row else place
        yield os.path.normpath(path) if ".." in path else path


def names_in(folder):
    try:
        return os.listdir(folder)
    except OSError:
        return []


def text(path):
    """Return the text of a file; none if it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except OSError:
        return ""

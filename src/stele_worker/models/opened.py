"""Which files of the user a worker reads, so that the host notices if one of them changes."""

import functools
import os
import sys
import sysconfig

from stele_worker.models.errors import is_in_project, is_internal

CONFIG = "config.json"  # of a Hugging Face model, whose weights are beside it, and may be read by other means
BESIDE = (".json", ".safetensors", ".bin", ".txt", ".model")
WRITING = os.O_WRONLY | os.O_RDWR
LIBRARIES = tuple(
    os.path.join(os.path.abspath(sysconfig.get_path(name)), "") for name in ("stdlib", "platstdlib")
)

read, written = set(), set()


@functools.lru_cache(maxsize=None)  # a hook cannot be removed
def watch():
    """Remember from now on which files are opened. Python before 3.8 cannot: then only modules are known."""
    add_hook = getattr(sys, "addaudithook", None)
    if add_hook is not None:
        add_hook(remember)


def remember(event, arguments):
    if event == "open" and isinstance(arguments[0], (str, bytes)):
        path = os.path.abspath(os.fsdecode(arguments[0]))
        (written if arguments[2] & WRITING else read).add(path)
    elif event == "os.rename" and isinstance(arguments[1], (str, bytes)):
        written.add(os.path.abspath(os.fsdecode(arguments[1])))


def files(folder):
    """Return the paths of the user's modules, and of what was read of the project in ``folder`` and not written."""
    opened = {
        path for path in list(read - written) if is_in_project(path, folder) and not is_hidden(path, folder)
    }
    found = modules(folder) | opened
    for path in list(read - written):
        if os.path.basename(path) == CONFIG and not is_installed(path) and not is_hidden(path, folder):
            found |= beside(path)
    return sorted(path for path in found if os.path.isfile(path) and "__pycache__" not in path)


def modules(folder):
    """Return the files of the modules that are neither installed nor a part of Python or of Stele."""
    places = [getattr(module, "__dict__", {}).get("__file__") for module in list(sys.modules.values())]
    paths = {os.path.abspath(place) for place in places if isinstance(place, str)}
    return {path for path in paths if is_in_project(path, folder) or not is_installed(path)}


def is_installed(path):
    parts = path.split(os.sep)
    packages = "site-packages" in parts or "dist-packages" in parts
    return packages or path.startswith(LIBRARIES) or is_internal(path)


def is_hidden(path, folder):
    """Return whether a file is in a hidden folder, such as a cache, of the project or of the machine."""
    start = folder if is_in_project(path, folder) else os.sep
    return any(part.startswith(".") for part in os.path.relpath(path, start).split(os.sep))


def beside(config):
    """Return the config of a model, and the files with its weights and its vocabulary."""
    folder = os.path.dirname(config)
    return {os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(BESIDE)}

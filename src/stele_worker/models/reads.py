"""Which files a user's model reads, so that the host notices if one of them changes.

Python reports files that it opens itself. What compiled code opens in the project, the kernel of Linux reports. It also
reports what other processes open, so only files with the name of data count. The functions of two libraries are
wrapped, because weights are often outside of the project.
"""

import builtins
import collections
import ctypes
import functools
import importlib
import io
import os
import struct
import sys
import sysconfig
from itertools import islice

from stele_worker.models.errors import is_in_project, is_internal

CONFIG = "config.json"  # of a Hugging Face model, whose weights are beside it, and may be read by other means
BESIDE = (".json", ".safetensors", ".bin", ".txt", ".model")
WEIGHTS = (
    ".safetensors", ".bin", ".pt", ".pth", ".npz", ".npy", ".h5", ".hdf5", ".keras", ".ckpt", ".msgpack", ".pdparams",
    ".pkl", ".pickle", ".joblib", ".gguf", ".th", ".tar", ".index", ".ocdbt", ".csv",
)  # fmt: skip
DATA = (
    *WEIGHTS,
    ".json",
    ".txt",
    ".model",
    ".onnx",
    ".parquet",
    ".pb",
    ".so",
    ".spm",
    ".tflite",
    ".vocab",
    ".xml",
)
WRITING = os.O_WRONLY | os.O_RDWR
LIBRARIES = tuple(
    os.path.join(os.path.abspath(sysconfig.get_path(name)), "") for name in ("stdlib", "platstdlib")
)
# of inotify(7)
MODIFY, OPEN, MOVED_TO, CREATE, OF_FOLDER = 0x2, 0x20, 0x80, 0x100, 0x40000000
EVENT = struct.Struct("iIII")  # watch, mask, cookie, length of the name
FOLDERS, ENTRIES = 1000, 10000  # at most: of a project, and of a folder

read, written = set(), set()  # absolute paths
notices = {}  # of inotify: {file descriptor: {watch: folder}}; empty before ``watch`` was called


@functools.lru_cache(maxsize=None)  # a hook cannot be removed
def watch(folder):
    """Remember from now on which files are opened. Call it before the module of the user's project is imported."""
    hook = getattr(sys, "addaudithook", None)
    if hook is not None:
        hook(remember)
    else:  # Python before 3.8 reports nothing
        builtins.open = io.open = wrapped(io.open)
    if sys.platform == "linux":
        ask_kernel(folder)


@functools.lru_cache(maxsize=None)
def watch_libraries():
    """Remember from now on which files h5py and safetensors open, also outside of the project."""
    h5py, safetensors = imported("h5py"), imported("safetensors")
    if h5py is not None:
        h5py.File.__init__ = wrapped(h5py.File.__init__, at=1)
    if safetensors is not None:
        original = safetensors.safe_open
        for module in list(sys.modules.values()):  # those that have imported it by its name
            if getattr(module, "__dict__", {}).get("safe_open") is original:
                module.safe_open = wrapped(original)


def remember(event, arguments):
    if event == "open" and isinstance(arguments[0], (str, bytes)):
        path = os.path.abspath(os.fsdecode(arguments[0]))
        (written if arguments[2] & WRITING else read).add(path)
    elif event == "os.rename" and isinstance(arguments[1], (str, bytes)):
        written.add(os.path.abspath(os.fsdecode(arguments[1])))


def imported(name):
    """Return a package; None if it is not installed, or does not fit."""
    try:
        return importlib.import_module(name)
    except Exception:
        return None


def wrapped(function, at=0):
    """Return a function that remembers its argument number ``at``, a path."""

    @functools.wraps(function, updated=())
    def call(*values, **named):
        path = values[at] if len(values) > at else named.get("filename", named.get("name"))
        try:
            read.add(os.path.abspath(os.fsdecode(path)))
        except (TypeError, ValueError):  # a descriptor, or an object that is a file
            pass
        return function(*values, **named)

    return call


def ask_kernel(folder):
    """Let the kernel report what is opened in the folders of a project, without those of environments and caches."""
    library = ctypes.CDLL(None)
    descriptor = library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    if descriptor < 0:  # this user has as many as are allowed
        return
    watched, waiting = notices.setdefault(descriptor, {}), collections.deque([folder])
    while waiting and len(watched) < FOLDERS:
        path = waiting.popleft()
        try:
            with os.scandir(path) as entries:
                inside = list(islice(entries, ENTRIES))
        except OSError:
            continue
        if any(entry.name == "pyvenv.cfg" for entry in inside):
            continue
        number = library.inotify_add_watch(descriptor, os.fsencode(path), MODIFY | OPEN | MOVED_TO | CREATE)
        if number < 0:
            return
        watched[number] = path
        folders = [entry for entry in inside if entry.is_dir(follow_symlinks=False)]
        waiting.extend(entry.path for entry in folders if not entry.name.startswith((".", "__pycache__")))


def hear_kernel():
    """Remember what the kernel has reported."""
    for descriptor, watched in notices.items():
        while True:
            try:
                events = os.read(descriptor, 1 << 16)
            except BlockingIOError:
                break
            while events:
                number, mask, _, length = EVENT.unpack_from(events)
                name = events[EVENT.size : EVENT.size + length].rstrip(b"\0")
                events = events[EVENT.size + length :]
                path = os.path.join(watched.get(number, ""), os.fsdecode(name))
                if path.endswith(DATA) and not mask & OF_FOLDER:
                    (read if mask & OPEN else written).add(path)


def of_project(folder):
    """Return the paths of the user's modules, and of what was read of the project in ``folder`` and not written."""
    hear_kernel()
    opened = {
        path for path in list(read - written) if is_in_project(path, folder) and not is_hidden(path, folder)
    }
    found = modules(folder) | opened
    for path in list(read - written):
        if os.path.basename(path) == CONFIG and not is_installed(path) and not is_hidden(path, folder):
            found |= beside(path)
    return sorted(path for path in found if os.path.isfile(path) and "__pycache__" not in path)


def of_weights(model):
    """Return the names of the files of weights that were opened to build a model; without those that Stele reads.

    A factory may read some, such as ``from_pretrained``.
    """
    hear_kernel()
    ours = tuple(model[name] for name in ("weights", "values", "pretrained", "checkpoint") if model.get(name))
    paths = [
        path
        for path in list(read)
        if path.endswith(WEIGHTS) and not path.startswith(ours) and not is_in_packages(path)
    ]
    return sorted({os.path.basename(path) for path in paths})


def modules(folder):
    """Return the files of the modules that are neither installed nor a part of Python or of Stele."""
    places = [getattr(module, "__dict__", {}).get("__file__") for module in list(sys.modules.values())]
    paths = {os.path.abspath(place) for place in places if isinstance(place, str)}
    return {path for path in paths if is_in_project(path, folder) or not is_installed(path)}


def is_in_packages(path):
    parts = path.split(os.sep)
    return "site-packages" in parts or "dist-packages" in parts


def is_installed(path):
    return is_in_packages(path) or path.startswith(LIBRARIES) or is_internal(path)


def is_hidden(path, folder):
    """Return whether a file is in a hidden folder, such as a cache, of the project or of the machine."""
    start = folder if is_in_project(path, folder) else os.sep
    return any(part.startswith(".") for part in os.path.relpath(path, start).split(os.sep))


def beside(config):
    """Return the config of a model, and the files with its weights and its vocabulary."""
    folder = os.path.dirname(config)
    return {os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(BESIDE)}

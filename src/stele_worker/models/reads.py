"""Which files and environment variables a user's model reads, so that the host notices if one of them changes.

Python reports files that it opens itself, wherever they are. What compiled code opens in the project, the kernel of
Linux reports. It also reports what other processes open, so these files are named apart, and only those with the name
of data. The functions of two libraries are wrapped, because weights are often outside of the project.
"""

import builtins
import collections
import ctypes
import functools
import importlib
import io
import os
import stat
import struct
import sys
import time
from itertools import islice
from urllib.parse import urlsplit
from urllib.request import url2pathname

from stele_worker import is_own
from stele_worker.models import installed
from stele_worker.models.errors import is_in_project, is_internal

CONFIG = "config.json"  # of a Hugging Face model, whose weights are beside it, and may be read by other means
BESIDE = (".json", ".safetensors", ".bin", ".txt", ".model")
WEIGHTS = (
    ".safetensors", ".bin", ".pt", ".pth", ".npz", ".npy", ".h5", ".hdf5", ".keras", ".ckpt", ".msgpack", ".pdparams",
    ".pkl", ".pickle", ".joblib", ".gguf", ".th", ".tar", ".index", ".ocdbt", ".csv",
)  # fmt: skip
DATA = (
    *WEIGHTS, ".json", ".txt", ".model", ".onnx", ".parquet", ".pb", ".so", ".spm", ".tflite", ".vocab", ".xml",
    ".yaml", ".yml", ".toml", ".ini", ".cfg", ".conf", ".tsv", ".jsonl", ".arrow", ".feather", ".tfrecord",
    ".db", ".sqlite", ".sqlite3", ".dat", ".gz", ".zip", ".png", ".jpg", ".jpeg", ".wav",
)  # fmt: skip
# of the system, whose packages install nothing in /usr/local
SYSTEM = (
    "/proc/",
    "/sys/",
    "/dev/",
    "/etc/",
    "/run/",
    "/usr/",
    "/bin/",
    "/sbin/",
    "/lib/",
    "/lib32/",
    "/lib64/",
)
LOCAL = "/usr/local/"
# folders of launches, of Stele, of compilers, and of version control
VARIABLES = (
    "TMPDIR",
    "PYTHONPATH",
    "TORCHINDUCTOR_CACHE_DIR",
    "TRITON_CACHE_DIR",
    "CUDA_CACHE_PATH",
    "NUMBA_CACHE_DIR",
    "JAX_COMPILATION_CACHE_DIR",
)
CACHES = {"__pycache__", ".stele", ".git", ".hg", ".svn", ".nv", ".theano", ".triton", "torch_extensions"}
MOST = 2000  # files that are named one by one
ALL = "*"  # stands for all files of a folder
NAMES = "**"  # stands for the names of all that is in a folder
LISTING = ("os.listdir", "os.scandir")  # events
PASSING = ("os.py", "_collections_abc.py", "<frozen os>", "<frozen _collections_abc>")  # that ask for others
# of inotify(7)
MODIFY, OPEN, MOVED_TO, CREATE, OF_FOLDER = 0x2, 0x20, 0x80, 0x100, 0x40000000
EVENT = struct.Struct("iIII")  # watch, mask, cookie, length of the name
FOLDERS, ENTRIES = 1000, 10000  # at most: of a project, and of a folder

read, written = set(), set()  # absolute paths
looked_into = set()  # folders whose names the user's code has listed
# those of ``read`` that this process itself has opened, as they were then; the kernel has reported the others
reported = {}
variable_names = set()  # names of environment variables
left_out = []  # folders
started = []  # when ``watch`` was called, in nanoseconds
notices = {}  # of inotify: {file descriptor: {watch: folder}}; empty before ``watch`` was called


@functools.lru_cache(maxsize=None)  # a hook cannot be removed
def watch(folder):
    """Remember from now on what is read. Call it before the module of the user's project is imported."""
    hook = getattr(sys, "addaudithook", None)
    if hook is not None:
        hook(remember)
    else:  # Python before 3.8 reports nothing
        builtins.open = io.open = wrapped(io.open)
    left_out.extend(os.path.join(os.environ[name], "") for name in VARIABLES if os.environ.get(name))
    started.append(int(time.time() * 1e9))
    Noting.folder = folder
    for variables in (
        os.environ,
        getattr(os, "environb", None),
    ):  # the second one is that of bytes, not of Windows
        if variables is not None:
            variables.__class__ = Noting
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


listed = {}  # {code: names}: of a library that copies all variables, the names that it has not read yet


class Noting(type(os.environ)):
    """The variables of this process. Notes which ones Python asks for by name, and which ones the project lists."""

    folder = ""  # of the project

    def __getitem__(self, name):
        code = caller()
        text = os.fsdecode(name) if isinstance(name, (str, bytes)) else None
        if text in listed.get(code, ()):
            listed[code].discard(text)
        elif text is not None and not is_own(code.co_filename):
            variable_names.add(text)
        return super(Noting, self).__getitem__(name)

    def __iter__(self):
        names, code = list(super(Noting, self).__iter__()), caller()
        if not is_in_project(code.co_filename, self.folder):
            listed[code] = set(map(os.fsdecode, names))
        return iter(names)


def caller():
    """Return the code that uses ``os.environ``."""
    frame = sys._getframe(2)
    while frame.f_back is not None and os.path.basename(frame.f_code.co_filename) in PASSING:
        frame = frame.f_back
    return frame.f_code


def lister():
    """Return the file of the code that lists a folder through Python's own modules; "" for an import."""
    frame = sys._getframe(2)
    while frame is not None:
        name = frame.f_code.co_filename
        if "importlib" in name:
            return ""
        if not name.startswith("<frozen") and not installed.is_standard(name):
            return name
        frame = frame.f_back
    return ""


def remember(event, arguments):
    if event == "open" and isinstance(arguments[0], (str, bytes)):
        path = os.path.abspath(os.fsdecode(arguments[0]))
        flags = arguments[2]
        is_new = flags & os.O_TRUNC or (flags & os.O_CREAT and not os.path.exists(path))
        if flags & os.O_WRONLY or is_new:
            written.add(path)
        else:
            note(path)
    elif event == "os.rename" and isinstance(arguments[1], (str, bytes)):
        written.add(os.path.abspath(os.fsdecode(arguments[1])))
    elif event == "sqlite3.connect":
        note_database(arguments[0])
    elif event in LISTING and not isinstance(arguments[0], int) and is_in_project(lister(), Noting.folder):
        looked_into.add(os.path.abspath(os.fsdecode(arguments[0] or ".")))


def note_database(name):
    """Remember a database of SQLite that is opened by its path or by a URL, unless it is only in memory."""
    try:
        name = os.fsdecode(name)
    except TypeError:
        return
    if name.startswith("file:"):
        name = url2pathname(urlsplit(name).path)
    if name and not name.startswith(":memory:"):
        note(os.path.abspath(name))


def note(path):
    """Remember that this process reads a file."""
    read.add(path)
    if path not in reported:
        reported[path] = facts(path)


def facts(path):
    """Return the facts of a file that change if it is written or replaced; None if there is none."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino, stat.S_ISREG(status.st_mode)


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
            note(os.path.abspath(os.fsdecode(path)))
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


def of_process(folder):
    """Return what the user's code has read, of which a change decides the result:

    files      paths of modules and of files that were read and not written; of very many, "FOLDER/*" of each folder;
               "FOLDER/**" of folders whose names were listed; files of the project that could not be opened
    noticed    paths of files that another process may have opened
    variables  names of environment variables
    """
    hear_kernel()
    opened = {path for path in list(read - written) if counts(path, folder)}
    noticed = opened - set(reported)
    opened -= noticed
    for path in list(opened):
        if os.path.basename(path) == CONFIG:
            opened |= beside(path)
    files = {path for path in modules(folder) | mapped(folder) | opened if os.path.isfile(path)}
    files |= {path for path in list(read - written) if is_absent(path, folder)}
    looked = (path for path in list(looked_into) if is_older(facts(path)) and not is_left_out(path, folder))
    names = {os.path.join(path, NAMES) for path in looked}
    return {
        "files": sorted(shortened(files) | names),
        "noticed": sorted(shortened(noticed - files)),
        "variables": sorted(variable_names),
    }


def counts(path, folder):
    """Return whether a file is older than this process, and no part of Python, the system, a package or a cache."""
    now = facts(path)
    if now is None or now != reported.get(path, now) or not now[-1]:
        return False
    return is_older(now) and not is_left_out(path, folder)


def is_absent(path, folder):
    """Return whether a file of the project did not exist when it was to be opened, and does not exist now."""
    if reported.get(path, path) is not None or facts(path) is not None:
        return False
    return is_in_project(path, folder) and not is_left_out(path, folder)


def is_older(now):
    """Return whether a file or a folder with these facts was not written since ``watch`` was called.

    Users can set the time of its content. That of its facts is the system's; its clock may have been ahead.
    """
    return now is not None and not min(started, default=sys.maxsize) <= now[1] <= time.time() * 1e9


def shortened(paths):
    """Return the paths; of too many, those of each folder with many as one."""
    if len(paths) <= MOST:
        return paths
    sizes = collections.Counter(map(os.path.dirname, paths))
    large = {name for name, size in sizes.items() if size > MOST // len(sizes)}
    whole = {os.path.join(name, ALL) for name in large}
    return whole | {path for path in paths if os.path.dirname(path) not in large}


def of_weights(model):
    """Return the names of the files of weights that were opened to build a model; without those that Stele reads.

    A factory may read some, such as ``from_pretrained``.
    """
    hear_kernel()
    ours = tuple(model[name] for name in ("weights", "values", "pretrained", "checkpoint") if model.get(name))
    paths = [
        path
        for path in list(read)
        if path.endswith(WEIGHTS) and not path.startswith(ours) and not installed.is_in_packages(path)
    ]
    return sorted({os.path.basename(path) for path in paths})


def modules(folder):
    """Return the files of the modules that are neither installed nor a part of Python or of Stele."""
    places = [getattr(module, "__dict__", {}).get("__file__") for module in list(sys.modules.values())]
    paths = {os.path.abspath(place) for place in places if isinstance(place, str)}
    return {path for path in paths if is_in_project(path, folder) or counts(path, folder)}


def mapped(folder):
    """Return the files that are in the memory of this process, such as libraries and weights."""
    try:
        with open("/proc/self/maps", "rb") as file:
            paths = {os.fsdecode(line[line.index(b"/") :]).rstrip("\n") for line in file if b"/" in line}
    except OSError:
        return set()
    return {path for path in paths - written if counts(path, folder)}


def is_left_out(path, folder):
    """Return whether a file is a part of Python, the system, a package, or a cache of programs that were compiled."""
    if installed.has(path):
        return True
    if is_in_project(path, folder):
        path = os.path.join(os.sep, os.path.relpath(path, folder))
    elif is_internal(path) or is_of_system(path) or path.startswith(tuple(left_out)):
        return True
    return not CACHES.isdisjoint(path.split(os.sep))


def is_of_system(path):
    return path.startswith(SYSTEM) and not path.startswith(LOCAL)


def beside(config):
    """Return the config of a model, and the files with its weights and its vocabulary."""
    folder = os.path.dirname(config)
    return {os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(BESIDE)}

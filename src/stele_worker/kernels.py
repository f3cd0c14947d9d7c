"""Which implementations the libraries below a framework selected: oneDNN's report of what it executes."""

import collections
import ctypes
import os
import sys
import tempfile

SETTERS = (
    "dnnl_set_verbose",
    "mkldnn_set_verbose",  # until oneDNN 1.0
    "_ZN5torch7verbose19_mkldnn_set_verboseEi",  # of PyTorch: _mkldnn_set_verbose(int)
)


def selected(run):
    """Return {operation: implementations} of oneDNN during run(), such as {"oneDNN convolution": "brgconv:avx2 (4)"}.

    Empty if no library of this process has oneDNN, or if it hides oneDNN's functions, as TensorFlow and MXNet do.
    """
    setters = find_setters()
    if not setters:
        return {}
    with tempfile.TemporaryFile() as file:
        with output_to(file):
            for setter in setters:
                setter(1)
            try:
                run()
            finally:
                for setter in setters:
                    setter(0)
        file.seek(0)
        return summarise(line.decode("utf-8", "replace") for line in file)


def find_setters():
    """Return the functions of the loaded libraries that turn the report of oneDNN on and off."""
    setters = []
    for path in loaded_libraries():
        library = ctypes.CDLL(path)
        setters += [getattr(library, name) for name in SETTERS if hasattr(library, name)]
    return setters


def loaded_libraries():
    """Return the paths of the libraries of this process. Linux only."""
    if not sys.platform.startswith("linux"):
        return []
    with open("/proc/self/maps") as file:
        paths = {line.split(None, 5)[5].strip() for line in file if line.count(" ") > 5 and "/" in line}
    return sorted(path for path in paths if ".so" in os.path.basename(path) and os.path.exists(path))


class output_to:
    """Let the standard output of native code go to a file."""

    def __init__(self, file):
        self.file = file

    def __enter__(self):
        flush()
        self.before = os.dup(1)
        os.dup2(self.file.fileno(), 1)

    def __exit__(self, *_):
        flush()
        os.dup2(self.before, 1)
        os.close(self.before)


def flush():
    sys.stdout.flush()
    ctypes.CDLL(None).fflush(None)


def summarise(lines):
    """Return the implementations and how often each was executed, by operation.

    A line is ``onednn_verbose,v1,primitive,exec,cpu,convolution,brgconv:avx512_core,forward_training,…``; older
    versions have neither "v1" nor "primitive" in it.
    """
    counts = collections.defaultdict(collections.Counter)
    for line in lines:
        parts = line.strip().split(",")
        if parts[0] in ("onednn_verbose", "dnnl_verbose", "mkldnn_verbose") and "exec" in parts:
            fields = parts[parts.index("exec") + 1 :]
            fields = fields[1:] if fields[0] in ("cpu", "gpu") else fields
            operation, implementation, direction = fields[:3]
            counts["oneDNN {} {}".format(operation, direction)][implementation] += 1
    return {
        operation: ", ".join("{} ({})".format(*pair) for pair in sorted(used.items()))
        for operation, used in sorted(counts.items())
    }

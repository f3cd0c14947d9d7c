"""Which files of weights a process opens: a factory may read some, such as ``from_pretrained``.

Python reports files that it opens itself. Two libraries open them in compiled code, so their functions are wrapped.
"""

import builtins
import functools
import importlib
import io
import os
import sys

SUFFIXES = (
    ".safetensors", ".bin", ".pt", ".pth", ".npz", ".npy", ".h5", ".hdf5", ".keras", ".ckpt", ".msgpack", ".pdparams",
    ".pkl", ".pickle",
)  # fmt: skip
INSTALLED = ("site-packages", "dist-packages")
opened = set()  # absolute paths
state = {"watching": False}


def watch():
    """Note from now on which files are opened. Call it before the user's module is imported."""
    if state["watching"]:
        return
    state["watching"] = True
    hook = getattr(sys, "addaudithook", None)
    if hook is not None:
        hook(lambda event, arguments: note(arguments[0]) if event == "open" else None)
    else:  # Python before 3.8
        builtins.open = io.open = wrapped(io.open)
    h5py, safetensors = imported("h5py"), imported("safetensors")
    if h5py is not None:
        h5py.File.__init__ = wrapped(h5py.File.__init__, at=1)
    if safetensors is not None:
        original = safetensors.safe_open
        for module in list(sys.modules.values()):  # those that have imported it by its name
            if getattr(module, "__dict__", {}).get("safe_open") is original:
                module.safe_open = wrapped(original)


def imported(name):
    """Return a package; None if it is not installed, or does not fit."""
    try:
        return importlib.import_module(name)
    except Exception:
        return None


def wrapped(function, at=0):
    """Return a function that notes its argument number ``at``, a path."""

    @functools.wraps(function, updated=())
    def call(*values, **named):
        note(values[at] if len(values) > at else named.get("filename", named.get("name")))
        return function(*values, **named)

    return call


def note(path):
    try:
        path = os.path.abspath(os.fsdecode(path))
    except (TypeError, ValueError):  # a descriptor, or an object that is a file
        return
    if path.endswith(SUFFIXES) and not any(part in path.split(os.sep) for part in INSTALLED):
        opened.add(path)


def files(model):
    """Return the names of the files that were opened to build a model, sorted; without those that Stele reads."""
    ours = {model.get(name) for name in ("weights", "values", "pretrained")}
    return sorted({os.path.basename(path) for path in opened - ours})

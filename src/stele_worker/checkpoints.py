"""Save the state of a training to a file, so that another process can continue it. See ``recipes`` for ``step.state``.

A file has the state as arrays "state.<name>", "results" as the JSON text of what is kept of each epoch, and "release",
the versions of the framework.
"""

import json
import os
import zipfile
from time import perf_counter

import numpy

SECONDS = 300.0  # between two files: writing one is part of the training, so a short training writes none
PREFIX = "state."


class Checkpoints:
    """The file at ``path`` with the state of ``step``. Without a path, or without a state, nothing is saved."""

    def __init__(self, path, step, versions):
        self.path = path if hasattr(step, "state") else None
        self.step, self.release, self.last = step, json.dumps(versions, sort_keys=True), perf_counter()

    def restore(self):
        """Put the step into the state of the file; return what is kept of each epoch, [] if the training starts.

        A file that is damaged, or of another release, is not used.
        """
        if self.path is None or not os.path.exists(self.path):
            return []
        try:
            with numpy.load(self.path, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            results, release = json.loads(str(arrays["results"])), str(arrays["release"])
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            return []
        if release != self.release:
            return []
        self.step.restore({name[len(PREFIX) :]: arrays[name] for name in arrays if name.startswith(PREFIX)})
        return results

    def save(self, results):
        """Write the file if the last one is SECONDS old."""
        if self.path is None or perf_counter() - self.last < SECONDS:
            return
        arrays = {PREFIX + name: array for name, array in self.step.state().items()}
        facts = {"results": numpy.array(json.dumps(results)), "release": numpy.array(self.release)}
        with open(self.path + ".tmp", "wb") as file:
            numpy.savez(file, **dict(arrays, **facts))
        os.replace(self.path + ".tmp", self.path)
        self.last = perf_counter()

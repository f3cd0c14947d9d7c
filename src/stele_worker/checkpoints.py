"""Save the state of a training to a file, so that another process can continue it. See ``recipes`` for ``step.state``.

A file has the state as arrays "state.<name>", and "results" as the JSON text of what is kept of each epoch.
"""

import json
import os
from time import perf_counter

import numpy

SECONDS = 300.0  # between two files: writing one is part of the training, so a short training writes none


class Checkpoints:
    """The file at ``path`` with the state of ``step``. Without a path, or without a state, nothing is saved."""

    def __init__(self, path, step):
        self.path = path if hasattr(step, "state") else None
        self.step, self.last = step, perf_counter()

    def restore(self):
        """Put the step into the state of the file; return what is kept of each epoch, [] without a file."""
        if self.path is None or not os.path.exists(self.path):
            return []
        with numpy.load(self.path, allow_pickle=False) as file:
            state = {name[len("state.") :]: file[name] for name in file.files if name.startswith("state.")}
            results = json.loads(str(file["results"]))
        self.step.restore(state)
        return results

    def save(self, results):
        """Write the file if the last one is SECONDS old."""
        if self.path is None or perf_counter() - self.last < SECONDS:
            return
        arrays = {"state." + name: array for name, array in self.step.state().items()}
        with open(self.path + ".tmp", "wb") as file:
            numpy.savez(file, results=numpy.array(json.dumps(results)), **arrays)
        os.replace(self.path + ".tmp", self.path)
        self.last = perf_counter()

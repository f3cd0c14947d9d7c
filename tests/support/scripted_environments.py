"""An environment with the scripted worker; see ``scripted_worker.py``."""

import json
import sys
from pathlib import Path

from stele.environments import Environment
from stele.parity import golden_numbers

# what the scripted worker says about a model
INSPECTION = {
    "framework": "scripted",
    "inputs": [{"name": None, "kind": "float", "shape": [8, 3], "high": None, "dtype": None}],
    "target": None,
    "parameters": 12,
    "deterministic": True,
    "loss": "the model's own",
    "summary": "Scripted: 12 parameters; inputs 8x3 from the signature",
}
SCRIPTED = Path(__file__).with_name("scripted_worker.py")
# seconds after which a test stops a worker that hangs; on a slow machine, Python alone can need one to start
SHORT = 3


def scripted_environment(script, name="scripted"):
    return Environment(
        name=name,
        label="Scripted",
        framework="scripted",
        variables={"SCRIPT": json.dumps(script)},
        command=(sys.executable, str(SCRIPTED)),
    )


def correct_numbers(task):
    """Return the answer to ``parity`` of a worker that computes correctly."""
    return {**golden_numbers.load(task), "unequal": {}, "repeats": True, "tracked": False, "digest": "same"}

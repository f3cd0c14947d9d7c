"""The messages between host and worker: newline-delimited JSON, one request and its answers at a time.

The contract in full, for a worker in another language: docs/protocol.md.

request    {"id": 1, "verb": "train", ...fields of the verb}
answers    {"id": 1, "progress": {"phase": "train", "done": 3, "of": 150}}     any number of these, then one of
           {"id": 1, "result": {...}}
           {"id": 1, "error": {"type": "ValueError", "message": "...", "traceback": "..."}}
in turns   {"id": 1, "pause": {"done": 3}}    another worker has its turn, until the host says
           {"id": 1, "go": true}

verb        fields                                        result
hello                                                     protocol, python, numpy, pid
configure   framework, settings                           import_seconds, versions, flags
train       task, scale, seed, form, data, weights, warmup, turn    an outcome: see stele_worker.measurement
infer       the same                                      an outcome
capability  name                                          numbers: see stele_worker.capabilities
defaults    framework                                     table, versions: see stele_worker.defaults
parity      task, phase, seed, form, cause                see stele_worker.agreement

settings    {"device": "cpu" or "cuda", "threads": 2, "precision": "fp32", "tf32" or "bf16", "autotune": true,
            "deterministic": false, "seed": 0, "tuned": true}; untuned is a framework as shipped, without
            what its documentation tells one to turn on
form        another form of the Task than its own, such as "one-bias", or null
cause       one of stele_worker.causes to plant into the oracle's recipe; of other workers it is never asked
data        paths of .npy files: {"train_x": ..., "train_y": ..., "test_x": ..., "test_y": ...}, or null
weights     path of an .npz file of named arrays, or null for the Task's seeded ones
turn        how many steps lie between two pauses, of which one comes before the first; or null for none
warmup      {"window": 5, "tolerance": 0.05, "most": 30}: see stele_worker.clock

A number that is not finite, and a fact that is not known, are null. The end of standard input ends the worker.
"""

import json
import math

VERSION = 3


def encode(message):
    """A message as one line of text, without its newline."""
    return json.dumps(plain(message), allow_nan=False, separators=(",", ":"))


def decode(line):
    """The message in a line of text; ValueError where there is none."""
    message = json.loads(line)
    if not isinstance(message, dict):
        raise ValueError("not a JSON object: {:.80}".format(line))
    return message


def plain(value):
    """Containers and numbers, numpy's too, as JSON knows them; a number that is not finite becomes None."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value

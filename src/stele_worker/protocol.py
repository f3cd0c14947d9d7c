"""The messages between host and worker: newline-delimited JSON, one request and its answers at a time.

docs/protocol.md is the complete specification, for workers in other languages.

request    {"id": 1, "verb": "train", ...fields of the verb}
answers    {"id": 1, "progress": {"phase": "train", "done": 3, "of": 150}}     any number of these, then one of
           {"id": 1, "result": {...}}
           {"id": 1, "error": {"type": "ValueError", "message": "...", "traceback": "..."}}
turns      {"id": 1, "pause": {"done": 3}}    the worker waits, while another worker runs, until the host sends
           {"id": 1, "go": true}

verb        fields                                        result
hello                                                     protocol, python, numpy, pid
configure   framework, settings                           import_seconds, versions, flags
train       task, scale, seed, form, data, weights, warmup, turn    an outcome: see stele_worker.measurement
infer       the same                                      an outcome
            both: also batch, steps, limit, blocks, new_batch, sizes, loader, profile, sampler and communication, if
            they are wanted
time-to-accuracy  task, scale, seed, form, data, weights, turn, checkpoint, epochs, tricks, division, target,
            attempts
                                                          an outcome: see stele_worker.time_to_accuracy
capability  name                                          numbers: see stele_worker.capabilities
defaults    framework                                     table, versions: see stele_worker.defaults
parity      task, phase, seed, form, cause                see stele_worker.agreement

settings    {"device": "cpu" or "cuda", "threads": 2, "precision": "fp32", "tf32" or "bf16", "autotune": true,
            "deterministic": false, "seed": 0, "mode": "eager"}; mode is one of the framework's MODES, or null
            for its first
form        a variant of the Task, such as "one-bias", or null for the Task's own form
cause       a cause of stele_worker.causes to inject into the oracle's recipe; only sent to the oracle's worker
data        paths of .npy files: {"train_x": ..., "train_y": ..., "test_x": ..., "test_y": ...}, or null
checkpoint  path of the file from which a killed training continues; see stele_worker.checkpoints
epochs      number of epochs, in place of that of the Task
tricks      names of tricks of the Task, in place of all
division    "open": the framework draws initial weights, crops, flips and squares; null for "closed"
target      an accuracy, for up to ``attempts`` trainings until one reaches it
weights     path of an .npz file of named arrays, or null for the Task's seeded weights
turn        number of steps between two pauses, the first pause being before the first step; null for no pauses
batch       samples of a step, in place of those of the Task
steps       stop after so many steps, and do not evaluate
limit       stop after steps of so many seconds, and so in each other kind of steps below; needs steps. The first step
            does not count, and at least one more is timed
blocks      number of blocks of steps to time after the steps, with one wait each; needs steps in training
new_batch   true: also time a step with another number of samples, after everything else
sizes       number of steps to time with each of several numbers of samples, after everything else; needs steps in
            training
loader      number of batches of the framework's own loader to time, alone and with steps; needs steps; training only
profile     number of steps to run under the framework's profiler, after everything else; needs steps in training
communication  number of steps to time with and without communication of the devices; needs steps; training only
sampler     path of py-spy, for frameworks without a profiler; null if it is not installed
warmup      {"window": 5, "tolerance": 0.05, "most": 30}: see stele_worker.clock; on a GPU also "seconds": the least
            seconds of warm-up, and of what is measured after it

Unknown values and numbers that are not finite are null. The worker ends when its standard input ends.
"""

import json
import math

TIME_TO_ACCURACY = "time-to-accuracy"  # a phase in which a step is an epoch
VERSION = 1


class SetupError(Exception):
    """The environment lacks something, or a variable of the user prevents a measurement: no release is to blame."""


class InternalError(Exception):
    """Stele's own code uses something that does not exist: neither a release nor the user is to blame."""


def encode(message):
    """Return a message as one line of text, without a newline."""
    return json.dumps(to_json(message), allow_nan=False, separators=(",", ":"))


def decode(line):
    """Return the message in a line of bytes. Raises ValueError if the line is not a JSON object in UTF-8."""
    try:
        message = json.loads(line.decode("utf-8"), parse_constant=reject_constant)
    except RecursionError:
        raise ValueError("nested too deeply: {!r:.80}".format(line)) from None
    if not isinstance(message, dict):
        raise ValueError("not a JSON object: {!r:.80}".format(line))
    return message


def number_of(request):
    """Remove the id of a request and return it. Raises ValueError if it is not an integer."""
    number = request.pop("id", None)
    if number is not None and type(number) is not int:
        raise ValueError("the id of a request is an integer, not {!r:.80}".format(number))
    return number


def reject_constant(constant):
    raise ValueError("{} is not JSON: a number that is not finite is null".format(constant))


def to_json(value):
    """Return containers and numbers, including NumPy's, as JSON types; numbers that are not finite become None."""
    if isinstance(value, dict):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json(item) for item in value]
    if hasattr(value, "tolist"):
        return to_json(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value

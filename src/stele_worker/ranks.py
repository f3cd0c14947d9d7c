"""Data parallelism over several devices: the ranks of a worker, and the samples of each.

A framework trains on several devices in one of two ways, which its module names in ``PARALLEL``:

"processes"  each device has a process, a rank, as torchrun starts them. The worker is rank 0 and starts the others. It
             forwards every line of the host, so that all ranks do the same, each with its share of the samples
"sharded"    one process uses all devices and divides each batch itself

The first starts with the environment variables of torchrun: RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT.
"""

import os
import queue
import socket
import subprocess
import sys
import threading
import time

import numpy

from stele_worker import protocol

COMMAND = [sys.executable, "-m", "stele_worker"]  # starts a rank
# Rank 0 may answer with an error that all ranks have. After so long the worker ends with the error of another rank
ANSWER_SECONDS = 5.0
END_SECONDS = 0.5  # in which a rank has ended, if its connections are closed

count = 1  # devices
processes = 1  # that divide each batch
shards = 1  # in which one device computes a batch, as a reference for devices that do not exchange statistics
others = []  # the ranks that this process has started
host = None  # of the current request, which is told if another rank fails


def number():
    """Return the rank of this process."""
    return int(os.environ.get("RANK", 0))


def configure(framework, module, settings):
    """Take the number of devices from the settings; raise ValueError if the framework cannot use so many."""
    global count, processes, shards
    count, shards = settings.get("devices", 1), settings.get("shards", 1)
    kind = getattr(module, "PARALLEL", None)
    if count > 1 and kind is None:
        raise ValueError("{} has no recipe for several devices: omit --devices".format(framework))
    processes = count if kind == "processes" else 1


def start(request):
    """Start the other ranks with the request that this process has received."""
    if processes == 1 or number() > 0:
        return
    port = free_port()
    os.environ.update(torchrun_variables(0, port))
    for rank in range(1, processes):
        others.append(Rank(rank, dict(os.environ, **torchrun_variables(rank, port))))
    forward((protocol.encode(dict(request, id=host.number)) + "\n").encode())


def torchrun_variables(rank, port):
    return {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(processes),
        "LOCAL_WORLD_SIZE": str(processes),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }


def free_port():
    """Return a port of the loopback interface that no process uses."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def forward(line):
    """Send a line of the host to the other ranks."""
    for rank in others:
        rank.send(line)


class Requests:
    """The lines of the host, each of which the other ranks receive, too."""

    def __init__(self, stream):
        self.stream = stream

    def readline(self):
        line = self.stream.readline()
        if line:
            forward(line)
        return line

    def __iter__(self):
        return iter(self.readline, b"")


class Rank:
    """Another rank of this worker. If it fails, the worker ends with its error."""

    def __init__(self, number, variables):
        self.number, self.results = number, queue.Queue()
        self.process = subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=variables)
        threading.Thread(target=self.read, daemon=True).start()

    def send(self, line):
        try:
            self.process.stdin.write(line)
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # the thread that reads reports it

    def read(self):
        for line in self.process.stdout:
            answer = protocol.decode(line)
            if "error" in answer:
                self.end(answer["error"])
            elif "result" in answer:
                self.results.put(answer["result"])
        self.end({"type": "RuntimeError", "message": "its process ended", "traceback": ""})

    def end(self, error):
        """End the worker with an error, unless it answers with an error itself: the other ranks would wait forever."""
        time.sleep(ANSWER_SECONDS)
        if not host.failed:
            host.send("error", dict(error, message="rank {}: {}".format(self.number, error["message"])))
        os._exit(1)


def describe_ended():
    """Return ``rank 1 ended with exit code 9`` if another rank ended, or None. Negative codes are signals."""
    for rank in others:
        try:
            code = rank.process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            continue
        return "rank {} ended with exit code {}".format(rank.number, code)
    return None


def results(own):
    """Return the results of all ranks, in order; ``own`` is that of this process."""
    return [own] + [rank.results.get() for rank in others]


def share(rows):
    """Return the rows of a batch that this rank reads. Raises ValueError if the ranks cannot have equal shares."""
    if processes == 1:
        return rows
    return numpy.split(rows, equal_shares(len(rows), processes))[number()]


def equal_shares(samples, parts):
    if samples % parts:
        raise ValueError("a batch of {} samples cannot be divided by {} devices".format(samples, parts))
    return parts


def mean_over_shards(loss, split):
    """Return the mean of a loss over the shards of a batch, into which ``split(array, parts)`` divides it.

    It is the loss itself, unless one device stands for several.
    """
    if shards == 1:
        return loss

    def mean(*arrays):
        parts = equal_shares(arrays[0].shape[0], shards)
        return sum(loss(*shard) for shard in zip(*(split(array, parts) for array in arrays))) / parts

    return mean


def only_training(verb):
    """Raise ValueError if a phase that uses one device was asked for with several."""
    if count > 1:
        raise ValueError("'{}' uses one device, and {} are configured: omit --devices".format(verb, count))


def scaled(task, scaling, model=None):
    """Return changes of a Task for several devices. Raises ValueError for a model of the user.

    With "weak" scaling each device has the batch of one device, and the learning rate grows with the devices. With
    "strong" scaling the batch is divided.
    """
    if count > 1 and model is not None:
        raise ValueError("a model of the user is measured on one device: omit --devices")
    if count == 1 or scaling == "strong":
        return {}
    changes = {"batch": task.batch * count, "learning_rate": task.learning_rate * count}
    return changes if task.data is not None else dict(changes, train=task.train * count)  # noise is unlimited


def combined(result, keys=("host_memory", "device_memory")):
    """Return the outcome of all ranks: losses are means; peak memory is that of each rank.

    Durations of communication are those of the slowest rank: all begin at the same time.
    """
    outcomes = results(result)
    if len(outcomes) == 1:
        return result
    if "losses" in result:
        columns = zip(*(outcome["losses"] for outcome in outcomes))
        result["losses"] = [float(numpy.mean(losses)) for losses in columns]
    if "communication" in result:
        result["communication"] = {
            name: [max(of_step) for of_step in zip(*(outcome["communication"][name] for outcome in outcomes))]
            for name in result["communication"]
        }
    result["ranks"] = [{key: outcome[key] for key in keys} for outcome in outcomes]
    return result

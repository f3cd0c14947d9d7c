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

# Rank 0 may answer with an error that all ranks have. After so long the worker ends with the error of another rank
ANSWER_SECONDS = 5.0
END_SECONDS = 0.5  # in which a rank has ended, if its connections are closed


class Ranks:
    """The devices of this worker, and the other ranks that it has started."""

    # starts a rank
    COMMAND = [sys.executable, "-m", "stele_worker"]

    def __init__(self):
        self.count = 1  # devices
        self.processes = 1  # that divide each batch
        self.shards = 1  # in which one device computes a batch, as a reference for devices without common statistics
        self.others = []  # the ranks that this process has started
        self.host = None  # of the current request, which is told if another rank fails

    def number(self):
        """Return the rank of this process."""
        return int(os.environ.get("RANK", 0))

    def configure(self, framework, settings):
        """Take the number of devices from the settings; raise ValueError if the framework cannot use so many."""
        self.count, self.shards = settings.get("devices", 1), settings.get("shards", 1)
        if self.count > 1 and framework.PARALLEL is None:
            raise ValueError("{} has no recipe for several devices: omit --devices".format(framework.name))
        self.processes = self.count if framework.PARALLEL == "processes" else 1

    def start(self, request):
        """Start the other ranks with the request that this process has received."""
        if self.processes == 1 or self.number() > 0:
            return
        port = free_port()
        os.environ.update(self.torchrun_variables(0, port))
        for rank in range(1, self.processes):
            self.others.append(Rank(self, rank, dict(os.environ, **self.torchrun_variables(rank, port))))
        self.forward((protocol.encode(dict(request, id=self.host.number)) + "\n").encode())

    def torchrun_variables(self, rank, port):
        return {
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "WORLD_SIZE": str(self.processes),
            "LOCAL_WORLD_SIZE": str(self.processes),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
        }

    def forward(self, line):
        """Send a line of the host to the other ranks."""
        for rank in self.others:
            rank.send(line)

    def describe_ended(self):
        """Return ``rank 1 ended with exit code 9`` if another rank ended, or None. Negative codes are signals."""
        for rank in self.others:
            try:
                code = rank.process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                continue
            return "rank {} ended with exit code {}".format(rank.number, code)
        return None

    def results(self, result):
        """Return the results of all ranks, in order; ``result`` is that of this process."""
        return [result] + [rank.results.get() for rank in self.others]

    def share(self, rows):
        """Return the rows of a batch that this rank reads. Raises ValueError if the ranks cannot have equal shares."""
        if self.processes == 1:
            return rows
        return numpy.split(rows, self.equal_shares(len(rows), self.processes))[self.number()]

    @staticmethod
    def equal_shares(samples, parts):
        """Return ``parts``. Raises ValueError if so many devices cannot have equal shares of a batch."""
        if samples % parts:
            raise ValueError("a batch of {} samples cannot be divided by {} devices".format(samples, parts))
        return parts

    def mean_over_shards(self, loss, split):
        """Return the mean of a loss over the shards of a batch, into which ``split(array, parts)`` divides it.

        It is the loss itself, unless one device stands for several.
        """
        if self.shards == 1:
            return loss

        def mean(*arrays):
            parts = self.equal_shares(arrays[0].shape[0], self.shards)
            return sum(loss(*shard) for shard in zip(*(split(array, parts) for array in arrays))) / parts

        return mean

    def only_training(self, verb):
        """Raise ValueError if a phase that uses one device was asked for with several."""
        if self.count > 1:
            raise ValueError("'{}' uses one device, and {} are configured: omit --devices".format(verb, self.count))

    def scaled(self, task, scaling, model=None):
        """Return changes of a Task for several devices. Raises ValueError for a model of the user.

        With "weak" scaling each device has the batch of one device, and the learning rate grows with the devices. With
        "strong" scaling the batch is divided.
        """
        if self.count > 1 and model is not None:
            raise ValueError("a model of the user is measured on one device: omit --devices")
        if self.count == 1 or scaling == "strong":
            return {}
        changes = {"batch": task.batch * self.count, "learning_rate": task.learning_rate * self.count}
        return changes if task.data is not None else dict(changes, train=task.train * self.count)  # noise is unlimited

    def combined(self, result):
        """Return the outcome of all ranks: losses are means; peak memory is that of each rank.

        Durations of communication are those of the slowest rank: all begin at the same time.
        """
        outcomes = self.results(result)
        if len(outcomes) == 1:
            return result
        if "learning" in result:
            columns = zip(*(outcome["learning"]["losses"] for outcome in outcomes))
            result["learning"]["losses"] = [float(numpy.mean(losses)) for losses in columns]
        if "communication" in result:
            result["communication"] = {
                name: [max(of_step) for of_step in zip(*(outcome["communication"][name] for outcome in outcomes))]
                for name in result["communication"]
            }
        result["memory"]["ranks"] = [dict(outcome["memory"]) for outcome in outcomes]
        return result


def free_port():
    """Return a port of the loopback interface that no process uses."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Requests:
    """The lines of the host, each of which the other ranks receive, too."""

    def __init__(self, stream, ranks):
        self.stream, self.ranks = stream, ranks

    def readline(self):
        line = self.stream.readline()
        if line:
            self.ranks.forward(line)
        return line

    def __iter__(self):
        return iter(self.readline, b"")


class Rank:
    """Another rank of this worker. If it fails, the worker ends with its error."""

    def __init__(self, ranks, number, variables):
        self.ranks, self.number, self.results = ranks, number, queue.Queue()
        self.process = subprocess.Popen(ranks.COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=variables)
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
        host = self.ranks.host
        if not host.failed:
            host.send("error", dict(error, message="rank {}: {}".format(self.number, error["message"])))
        os._exit(1)


ranks = Ranks()  # of this process, which serves one host

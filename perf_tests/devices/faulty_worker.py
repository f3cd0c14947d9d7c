"""A worker of PyTorch with a fault of data parallelism: ``python faulty_worker.py FAULT``. See faults.py."""

import os
import sys

import numpy

from stele_worker import __main__, ranks

FAULT = sys.argv[1]


def plant_unscaled_gradient():
    """Add the gradients of the ranks, and do not divide them."""
    import torch.distributed

    from stele_worker.frameworks import torch as module

    right = module.on_all_devices

    def add(state, bucket):
        future = torch.distributed.all_reduce(bucket.buffer(), async_op=True).get_future()
        return future.then(lambda done: done.value()[0])

    def on_all_devices(net, loss):
        parallel = right(net, loss)
        if ranks.processes > 1:
            parallel.register_comm_hook(None, add)
        return parallel

    module.on_all_devices = on_all_devices


def plant_unsynchronised_gradient():
    """Let each rank train alone."""
    from stele_worker.frameworks import torch as module

    module.on_all_devices = lambda net, loss: loss


def plant_same_samples():
    """Give every rank the share of the first one."""
    ranks.share = lambda rows: numpy.split(rows, ranks.processes)[0]


def plant_killed_rank():
    """End the second rank when it reads its samples."""
    right = ranks.share
    ranks.share = lambda rows: os._exit(9) if ranks.number() == 1 else right(rows)


PLANT = {
    "none": lambda: None,
    "unscaled gradient": plant_unscaled_gradient,
    "unsynchronised gradient": plant_unsynchronised_gradient,
    "same samples": plant_same_samples,
    "killed rank": plant_killed_rank,
}

if __name__ == "__main__":
    ranks.COMMAND[:] = [sys.executable, __file__, FAULT]
    if "RANK" in os.environ or FAULT != "killed rank":
        PLANT[FAULT]()
    __main__.main()

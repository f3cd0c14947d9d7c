"""A worker with a fault of data parallelism: ``python faulty_worker.py FRAMEWORK FAULT``. See faults.py."""

import os
import sys

import numpy

from stele_worker import __main__, frameworks
from stele_worker.ranks import ranks

FRAMEWORK, FAULT = sys.argv[1:] if __name__ == "__main__" else ("torch", "none")


def of_module(name):
    """Return what has the function ``name``, and this: FRAMEWORK, what its recipes share, or Keras' backend."""
    shared = frameworks.part(FRAMEWORK, "recipe")
    for holder in (shared, frameworks.load(FRAMEWORK), getattr(shared, "backend", None)):
        if hasattr(holder, name):
            return holder, getattr(holder, name)
    raise AttributeError(name)


def first_share(rows):
    return numpy.split(rows, ranks.count)[0]


def leave_communication_out():
    """Train with the step that a launch times as a step without communication."""
    module, right = of_module("make_training_step")

    def make_training_step(*arguments, **options):
        step = right(*arguments, **options)
        if hasattr(step, "communication"):
            step.communication().exchanges = False
        return step

    module.make_training_step = make_training_step


def add_in_torch():
    """Add the gradients of the ranks, and do not divide them."""
    import torch.distributed

    module, right = of_module("on_all_devices")

    def add(state, bucket):
        future = torch.distributed.all_reduce(bucket.buffer(), async_op=True).get_future()
        return future.then(lambda done: done.value()[0])

    def on_all_devices(net, loss):
        parallel = right(net, loss)
        if ranks.processes > 1:
            parallel.register_comm_hook(None, add)
        return parallel

    module.on_all_devices = on_all_devices


def train_alone():
    """Let each rank train alone."""
    module, _ = of_module("on_all_devices")
    module.on_all_devices = lambda net, loss: loss


def share_samples_of_ranks():
    """Give every rank the share of the first one."""
    ranks.share = first_share


def keep_statistics():
    """Keep the initial running statistics, which only inference reads."""
    from stele_suite.recipes.densenet121 import torch as recipe

    right = recipe.normalisation

    def normalisation(task, channels):
        return right(task if ranks.processes == 1 else task._replace(statistics=0.0), channels)

    recipe.normalisation = normalisation


def kill_rank():
    """End the second rank when it reads its samples."""
    right = ranks.share
    ranks.share = lambda rows: os._exit(9) if ranks.number() == 1 else right(rows)


def add_in_jax():
    """Let each device compute the gradients of its samples; add them, and do not divide them."""
    import jax

    differentiate_on_each(lambda grads: jax.lax.psum(grads, "batch"))


def train_alone_in_jax():
    """Let each device keep the gradients of its samples."""
    differentiate_on_each(lambda grads: grads)


def differentiate_on_each(exchange):
    """Let jax.value_and_grad differentiate on each device the loss of its samples, and then ``exchange`` gradients."""
    import jax

    right, everywhere, part = (
        jax.value_and_grad,
        jax.sharding.PartitionSpec(),
        jax.sharding.PartitionSpec("batch"),
    )

    def value_and_grad(loss, has_aux):
        def run(weights, state, *arrays):
            (value, state), grads = right(loss, has_aux=has_aux)(weights, state, *arrays)
            return (jax.lax.pmean(value, "batch"), state), exchange(grads)

        def on_mesh(weights, state, *arrays):
            mesh = frameworks.load("jax").sharding().mesh
            inputs = (everywhere, everywhere) + (part,) * len(arrays)
            # without a check of the outputs, they are equal on all devices only if ``run`` makes them so
            return jax.shard_map(run, mesh=mesh, in_specs=inputs, out_specs=everywhere, check_vma=False)(
                weights, state, *arrays
            )

        return on_mesh if ranks.count > 1 else right(loss, has_aux=has_aux)

    jax.value_and_grad = value_and_grad


def share_samples_of_devices():
    """Give every device of the process the share of the first one."""
    module, right = of_module("take")
    module.take = lambda data, rows: right(data, numpy.tile(first_share(rows), ranks.count))


def add_in_chainer():
    """Add the gradients of the devices, and do not divide them."""
    module, right = of_module("add_gradients")

    def add_gradients(nets):
        right(nets)
        for parameter in nets[0].params():
            parameter.grad *= len(nets)

    module.add_gradients = add_gradients


def train_alone_in_chainer():
    """Let the devices exchange neither gradients nor parameters. The first one has the optimiser."""
    module, _ = of_module("add_gradients")
    module.add_gradients = module.copy_parameters = lambda nets: None


def add_in_tensorflow():
    """Add the gradients of the devices, and do not divide them."""
    import tensorflow as tf

    exchange_in_tensorflow(lambda context, grads: context.all_reduce(tf.distribute.ReduceOp.SUM, grads))


def train_alone_in_tensorflow():
    """Let each device keep the gradients of its samples."""
    exchange_in_tensorflow(lambda context, grads: grads)


def exchange_in_tensorflow(exchange):
    """Let each device compute the mean of the loss, and give its gradients to ``exchange``."""
    import tensorflow as tf

    module, right = of_module("differentiated_on_all_devices")

    def differentiated_on_all_devices(loss, weights, xla):
        if frameworks.load("tensorflow").strategy is None:
            return right(loss, weights, xla)
        differentiate = module.for_each_device(module.differentiated(loss, weights), xla)

        def run(*arrays):
            context, (value, grads) = tf.distribute.get_replica_context(), differentiate(*arrays)
            return context.all_reduce(tf.distribute.ReduceOp.MEAN, value), exchange(context, grads)

        return module.on_each_part(run)

    module.differentiated_on_all_devices = differentiated_on_all_devices


def add_in_paddle():
    """Multiply the mean gradients of the ranks by their number."""
    import paddle

    module, right = of_module("on_all_devices")
    backward, networks = paddle.Tensor.backward, []

    def on_all_devices(net, loss):
        networks.append(right(net, loss))
        return networks[-1]

    def add(loss, *arguments, **options):
        backward(loss, *arguments, **options)
        with paddle.no_grad():
            for parameter in networks[-1].parameters() if ranks.processes > 1 else ():
                if parameter.grad is not None:
                    parameter.grad.scale_(ranks.processes)

    module.on_all_devices, paddle.Tensor.backward = on_all_devices, add


def add_in_mxnet():
    """Multiply the mean gradients of the devices by their number."""
    from mxnet import gluon

    right = gluon.Trainer._allreduce_grads

    def add(trainer):
        right(trainer)
        for parameter in trainer._params:
            for gradient in parameter.list_grad() if parameter.grad_req != "null" else ():
                gradient *= ranks.count

    gluon.Trainer._allreduce_grads = add


def train_alone_in_mxnet():
    """Let the devices keep the gradients of their samples."""
    from mxnet import gluon

    right = gluon.Trainer.__init__

    def update_on_devices(trainer, *arguments, **options):
        right(trainer, *arguments, **dict(options, update_on_kvstore=False))

    gluon.Trainer.__init__ = update_on_devices
    gluon.Trainer._allreduce_grads = lambda trainer: None


PLANT = {
    "torch": {
        "unscaled gradient": add_in_torch,
        "unsynchronised gradient": train_alone,
        "same samples": share_samples_of_ranks,
        "stale statistics": keep_statistics,
        "killed rank": kill_rank,
        "communication left out": leave_communication_out,
    },
    "jax": {
        "unscaled gradient": add_in_jax,
        "unsynchronised gradient": train_alone_in_jax,
        "same samples": share_samples_of_devices,
        "communication left out": leave_communication_out,
    },
    "chainer": {
        "unscaled gradient": add_in_chainer,
        "unsynchronised gradient": train_alone_in_chainer,
        "same samples": share_samples_of_devices,
        "communication left out": leave_communication_out,
    },
    "keras": {
        "unscaled gradient": add_in_torch,
        "unsynchronised gradient": train_alone,
        "same samples": share_samples_of_ranks,
        "communication left out": leave_communication_out,
    },
    "paddle": {
        "unscaled gradient": add_in_paddle,
        "unsynchronised gradient": train_alone,
        "same samples": share_samples_of_ranks,
        "communication left out": leave_communication_out,
    },
    "tensorflow": {
        "unscaled gradient": add_in_tensorflow,
        "unsynchronised gradient": train_alone_in_tensorflow,
        "same samples": share_samples_of_devices,
        "communication left out": leave_communication_out,
    },
    "mxnet_gluon": {
        "unscaled gradient": add_in_mxnet,
        "unsynchronised gradient": train_alone_in_mxnet,
        "same samples": share_samples_of_devices,
    },
}

if __name__ == "__main__":
    ranks.COMMAND[:] = [sys.executable, __file__, FRAMEWORK, FAULT]
    # the rank that is killed is not the first one
    if FAULT != "none" and ("RANK" in os.environ or FAULT != "killed rank"):
        PLANT[FRAMEWORK][FAULT]()
    __main__.main()

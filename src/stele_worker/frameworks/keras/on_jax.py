"""Steps of Keras on JAX, as ``recipe`` describes them.

The values of variables are arguments and results of the compiled functions.
"""

import jax

from stele_worker import frameworks
from stele_worker.frameworks.jax.recipe import add_communication, compiled_update
from stele_worker.frameworks.keras.network import added, one_or_all, pending, values, write_back

framework = frameworks.load("keras")


def differentiated(net, loss):
    """Return run(parameters, other variables, *inputs, y) -> ((loss, other variables), gradients)."""

    def compute(parameters, others, *arrays):
        inputs = one_or_all(arrays[:-1])
        output, others, losses = net.stateless_call(parameters, others, inputs, training=True, return_losses=True)
        return added(loss(arrays[-1], output), losses), others

    return jax.value_and_grad(compute, has_aux=True)


def make_gradient_function(net, loss, faster_with_xla):
    variables, others = net.trainable_variables, net.non_trainable_variables
    run = framework.compiled(differentiated(net, loss))

    def step(*arrays):
        write_back(net)
        (value, _), gradients = run(values(variables), values(others), *arrays)
        return value, gradients

    return step


def make_update(net, optimiser, loss, faster_with_xla):
    write_back(net)
    groups = net.trainable_variables, net.non_trainable_variables, optimiser.variables
    run = differentiated(net, loss)

    def compute(state, *arrays):
        parameters, others, slots = state
        (value, others), gradients = run(parameters, others, *arrays)
        parameters, slots = optimiser.stateless_apply(slots, gradients, parameters)
        return value, (parameters, others, slots)

    update = compiled_update(compute, 1, values(groups[0]))

    def step(*arrays):
        # as in fit, values pass from step to step; write_back() copies them to the variables
        _, state = pending.get(net) or (groups, framework.native.replicated([values(group) for group in groups]))
        value, state = update(tuple(state), *arrays)
        framework.native.wait_also_for(state)
        pending[net] = groups, state
        return value

    add_communication(step, update)
    return step


def make_model_step(net, model, faster_with_xla):
    variables, others = model.trainable_variables, model.non_trainable_variables

    @framework.compiled
    def run(weights, others, *inputs):
        return model.stateless_call(weights, others, one_or_all(inputs), training=False)[0]

    def step(*inputs):
        write_back(net)
        return run(values(variables), values(others), *inputs)

    return step

"""What the recipes of Flax have in common: names of parameters, steps and gradients."""

import jax
import jax.numpy as jnp
from flax import nnx

from stele_worker.frameworks.jax.recipe import from_arrays, to_arrays
from stele_worker.frameworks.recipe import Recipe

# the Task's name of a variable of a layer
NAMES = {
    "kernel": "weight",
    "scale": "weight",
    "embedding": "weight",
    "bias": "bias",
    "mean": "running_mean",
    "var": "running_var",
}
# what ``load`` and ``stored`` have of a network; the rest are the keys of dropout
WEIGHTS = (nnx.Param, nnx.BatchStat)


class FlaxRecipe(Recipe):
    """A network is a module of nnx. It calls ``record`` with the output of each layer that parity compares."""

    RENAMED = {}  # {the Task's name of a parameter: that of ``name_of``}, where they differ

    def build(self, make, task):
        """Return make(rngs), without drawing initial weights, which ``assign`` replaces. Each dropout is seeded."""
        net = nnx.eval_shape(lambda: make(nnx.Rngs(0)))
        # rbg compiles and draws faster than threefry
        keys = iter(jax.random.split(jax.random.key(task.seed, impl="rbg"), 8))
        for _, variable in nnx.to_flat_state(nnx.state(net, nnx.RngState)):
            variable.set_value(next(keys) if isinstance(variable, nnx.RngKey) else jnp.zeros((), jnp.uint32))
        return net

    def forward(self, net, task, *inputs):
        return net(*inputs, self.record).astype(jnp.float32)

    def named(self, state):
        """Return {the Task's name: variable} of parameters, gradients or statistics."""
        names = {own: name for name, own in self.RENAMED.items()}
        pairs = [(name_of(path), variable) for path, variable in nnx.to_flat_state(state)]
        return {names.get(name, name): variable for name, variable in pairs}

    def assign(self, net, arrays):
        for name, variable in self.named(nnx.state(net, WEIGHTS)).items():
            variable.set_value(jnp.array(arrays[name]))
        return net

    def stored(self, net):
        variables = self.named(nnx.state(net, WEIGHTS))
        return {name: variable.get_value() for name, variable in variables.items()}

    def loss_function(self, task):
        """Return compute(net, *inputs, y) -> loss."""

        def compute(net, *arrays):
            *inputs, y = arrays
            return self.loss(task, self.forward(net, task, *inputs), y)

        return compute

    def training_step(self, net, task):
        net.train()
        optimiser = nnx.Optimizer(net, self.optimiser(net, task), wrt=nnx.Param)
        compute = nnx.value_and_grad(self.loss_function(task))

        def update(net, optimiser, *arrays):
            value, grads = compute(net, *arrays)
            optimiser.update(net, grads)
            return value

        # Flax recommends it for a loop: it does not walk through the modules in each step
        step = nnx.cached_partial(self.compiled(update), net, optimiser)

        def restore(saved):
            state = nnx.state((net, optimiser))
            nnx.update((net, optimiser), from_arrays(state, saved))

        step.state, step.restore = lambda: to_arrays(nnx.state((net, optimiser))), restore
        return step

    def gradients(self, net, task):
        net.train()
        compute = self.compiled(nnx.value_and_grad(self.loss_function(task)))

        def run(*arrays):
            value, grads = compute(net, *arrays)
            return value, {name: variable.get_value() for name, variable in self.named(grads).items()}

        return run

    def inference_step(self, net, task):
        net.eval()
        return nnx.cached_partial(self.compiled(lambda net, *inputs: self.predict(net, task, *inputs)), net)

    def evaluation_step(self, net, task):
        step = self.inference_step(net, task)
        net.train()
        return step

    def activations(self, net, task):
        net.eval()
        return lambda *inputs: self.recorded(lambda *inputs: self.forward(net, task, *inputs), *inputs)

    def compiled(self, function):
        """Return a jitted function, whose compilations the framework counts."""
        jitted = nnx.jit(function)
        self.framework.functions.append(jitted.jitted_fn)
        return jitted


def name_of(path):
    """Return ``layer1.0.conv1.weight`` of ("layer1", 0, "conv1", "kernel")."""
    *parts, last = map(str, path)
    return ".".join(parts + [NAMES[last]])

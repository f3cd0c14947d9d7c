"""What the recipes of tinygrad have in common: steps and gradients."""

from tinygrad import Context, Tensor
from tinygrad.nn.state import get_state_dict, load_state_dict

from stele_worker.frameworks.recipe import Recipe


class TinygradRecipe(Recipe):
    """A network is any object. It calls ``record`` with the output of each layer that parity compares."""

    RENAMED = {}  # {the Task's name of a parameter: the network's}, where they differ

    def forward(self, net, task, *inputs):
        return net(*inputs, self.record)

    def assign(self, net, arrays):
        tensors = {self.RENAMED.get(name, name): Tensor(array) for name, array in arrays.items()}
        load_state_dict(net, tensors, strict=False, verbose=False)  # the Task has no num_batches_tracked
        return net

    def stored(self, net):
        names = {own: name for name, own in self.RENAMED.items()}
        tensors = get_state_dict(net).items()
        return {names.get(name, name): tensor for name, tensor in tensors if not name.endswith("num_batches_tracked")}

    def differentiate(self, net, task, *arrays):
        """Return the loss, with the gradients in the parameters."""
        *inputs, y = arrays
        return self.loss(task, self.forward(net, task, *inputs), y).backward()

    def training_step(self, net, task):
        optimiser = self.optimiser(net, task)

        def update(*arrays):
            optimiser.zero_grad()
            return self.differentiate(net, task, *arrays).realize(*optimiser.schedule_step())

        compute = self.framework.compiled(update)

        def step(*arrays):
            with Context(TRAINING=1):
                return compute(*arrays).clone().realize()  # the next step writes to the same memory

        return step

    def gradients(self, net, task):
        def run(*arrays):
            parameters = {name: tensor for name, tensor in self.stored(net).items() if tensor.is_param}
            for tensor in parameters.values():
                tensor.grad = None
            with Context(TRAINING=1):
                value = self.differentiate(net, task, *arrays)
                value.realize(*(tensor.grad for tensor in parameters.values()))
            return value, {name: tensor.grad for name, tensor in parameters.items()}

        return run

    def inference_step(self, net, task):
        return self.framework.compiled(lambda *inputs: self.predict(net, task, *inputs))

    def activations(self, net, task):
        def run(*inputs):
            outputs = self.recorded(lambda *inputs: self.forward(net, task, *inputs), *inputs)
            return {name: channels_last(output) for name, output in outputs.items()}

        return run


def channels_last(output):
    return output.permute(0, 2, 3, 1) if output.ndim == 4 else output

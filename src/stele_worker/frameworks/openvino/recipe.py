"""What the recipes of OpenVINO have in common: constants, a model and its compilations."""

import openvino
from openvino import opset13 as ops

from stele_worker.frameworks.recipe import Recipe


class OpenvinoRecipe(Recipe):
    """A network is {parameter: constant}; ``predict`` computes the layers from it."""

    TRAINS = False

    def input(self, task):
        """Return the parameter of the model, as OpenVINO calls its input."""
        raise NotImplementedError

    def network(self, task):
        return {}

    def assign(self, net, arrays):
        net.update((name, ops.constant(array)) for name, array in arrays.items())
        return net

    def stored(self, net):
        return net

    def inference_step(self, net, task):
        """Return step(x). A call compiles the model for a new batch size; a free batch size cost 1 to 6 %."""
        framework, requests = self.framework, {}
        x = self.input(task)
        model = openvino.Model([self.predict(net, task, x)], [x], task.name)

        def step(x):
            shape = tuple(x.shape)
            if shape not in requests:
                model.reshape(list(shape))
                requests[shape] = framework.core.compile_model(model, "CPU", framework.options).create_infer_request()
            request = requests[shape]
            request.set_input_tensor(x)
            request.infer()
            return request.get_output_tensor()  # the next call overwrites it

        return step

"""What the recipes of ONNX Runtime have in common: a graph, its constants and its session."""

from stele_worker.frameworks.onnxruntime.graphs import constant, constants, graph, output
from stele_worker.frameworks.recipe import Recipe


class OnnxRecipe(Recipe):
    """A network is a graph of ONNX. ``predict`` adds its nodes, and returns the name of the last node's output."""

    TRAINS = False

    def input(self, task):
        """Return the name, the element type and the shape of the graph's input."""
        raise NotImplementedError

    def network(self, task):
        name, kind, shape = self.input(task)
        net = graph(task.name, name, kind, shape)
        return output(net, self.predict(net, task, name), ("batch", None))

    def assign(self, net, arrays):
        # no node uses the parameters that only training needs
        used = {name for node in net.node for name in node.input}
        for name, array in arrays.items():
            if name in used:
                constant(net, name, array)
        return net

    def stored(self, net):
        return constants(net)

    def inference_step(self, net, task):
        """Return step(x). Its first call creates the session, which optimises the graph.

        The batch size is not fixed: fixing it made nothing faster, and neither did an IOBinding with these OrtValues.
        """
        framework, sessions = self.framework, []
        name, result = net.input[0].name, net.output[0].name

        def step(x):
            if not sessions:
                sessions.append(framework.session(net))
            if framework.device == "cuda":
                return framework.run_bound(sessions[0], result, {name: x})
            return sessions[0].run_with_ort_values([result], {name: x})[0]

        return step

"""What the recipes of TensorFlow 1 have in common: variables, steps and gradients, in a session or eager."""

import tensorflow as tf

from stele_worker.frameworks.recipe import Recipe

UPDATES = tf.GraphKeys.UPDATE_OPS


def with_step(update):
    """Run an update with each training step; in eager mode it has already run."""
    if not tf.executing_eagerly():
        tf.add_to_collection(UPDATES, update)


class TensorFlow1Recipe(Recipe):
    """A network is {parameter: variable}; ``forward`` computes the layers from it.

    forward(net, task, x, training=False): ``training`` says whether dropout is on. In a session, ``forward`` adds
    operations to the graph, once for each step.
    """

    def network(self, task):
        return {}

    def input(self, task):
        """Return the placeholder of the input."""
        raise NotImplementedError

    def target(self, task):
        """Return the placeholder of the target."""
        return tf.placeholder(tf.int32, (None,))

    def is_trained(self, name):
        """Return whether the optimiser updates a variable of the network: all but running statistics."""
        return ".running_" not in name

    def variables(self, arrays):
        """Return a variable for each named array. As constants the arrays would make the graph large."""
        if tf.executing_eagerly():
            return {name: tf.Variable(array, name=name) for name, array in arrays.items()}
        values = {name: tf.placeholder(array.dtype, array.shape) for name, array in arrays.items()}
        result = {name: tf.Variable(value, name=name, use_resource=True) for name, value in values.items()}
        # all at once: in a larger graph, the first run of an operation takes longer
        initializers = [variable.initializer for variable in result.values()]
        self.framework.session.run(initializers, {values[name]: array for name, array in arrays.items()})
        return result

    def assign(self, net, arrays):
        net.update(self.variables(arrays))
        return net

    def stored(self, net):
        if tf.executing_eagerly():
            return {name: variable.numpy() for name, variable in net.items()}
        return self.framework.session.run(net)

    def differentiated(self, net, task):
        """Return compute(x, y) -> (loss, {parameter: gradient}): tensors of the graph, or values in eager mode."""
        weights = {name: variable for name, variable in net.items() if self.is_trained(name)}
        variables = list(weights.values())

        def loss(x, y):
            return self.loss(task, self.forward(net, task, x, training=True), y)

        def named(grads):
            # the gradient of an embedding consists of slices
            return dict(zip(weights, map(tf.convert_to_tensor, grads)))

        def in_graph(x, y):
            value = loss(x, y)
            return value, named(tf.gradients(value, variables))

        def eager(x, y):
            with tf.GradientTape() as tape:
                value = loss(x, y)
            return value, named(tape.gradient(value, variables))

        return eager if tf.executing_eagerly() else in_graph

    def training_step(self, net, task):
        compute, optimiser = self.differentiated(net, task), self.optimiser(net, task)

        def update(x, y):
            value, grads = compute(x, y)
            return value, optimiser.apply_gradients([(grad, net[name]) for name, grad in grads.items()])

        if tf.executing_eagerly():
            return lambda x, y: update(x, y)[0]
        before = len(tf.get_collection(UPDATES))
        x, y = self.input(task), self.target(task)
        value, applied = update(x, y)
        updates = tf.get_collection(UPDATES)[before:]  # of this network only
        self.framework.session.run(tf.variables_initializer(optimiser.variables()))
        run = self.function([x, y], [value, applied, updates])
        return lambda x, y: run(x, y)[0]

    def gradients(self, net, task):
        compute = self.differentiated(net, task)
        if tf.executing_eagerly():
            return compute
        x, y = self.input(task), self.target(task)
        return self.function([x, y], compute(x, y))

    def inference_step(self, net, task):
        if tf.executing_eagerly():
            return lambda x: self.predict(net, task, x)
        x = self.input(task)
        return self.function([x], self.predict(net, task, x))

    def function(self, inputs, outputs):
        """Return f(*handles or arrays) -> the values of ``outputs``."""
        return self.framework.session.make_callable(outputs, feed_list=inputs)

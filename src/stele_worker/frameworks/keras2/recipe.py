"""What the recipes of Keras 2 have in common: names of parameters, steps and gradients."""

import keras
from keras import backend as K

from stele_worker.frameworks.keras2.framework import BACKEND, LAYOUT
from stele_worker.frameworks.recipe import Recipe

KINDS = (".weight", ".bias", ".running_mean", ".running_var")  # of a layer, in the order of Keras


class Keras2Recipe(Recipe):
    """A network is a model of Keras, whose layers have the names of the Task.

    predict(net, task, *inputs) returns a tensor of the model. ``loss`` returns the loss of each sample: Keras computes
    the mean.
    """

    def predict(self, net, task, *inputs):
        return net.output

    def name_of(self, layer):
        """Return the name of a layer in the Task's names of its parameters."""
        return layer.name

    def names(self, groups):
        """Return the Task's names of the parameters of pairs of a layer and some of its parameters."""
        return [self.name_of(layer) + kind for layer, weights in groups for kind, _ in zip(KINDS, weights)]

    def named(self, groups, values):
        return dict(zip(self.names(groups), values))

    def assign(self, net, arrays):
        # all at once: a TensorFlow session is slow to process additions to a large graph
        net.set_weights([arrays[name] for name in self.names(all_weights(net))])
        return net

    def stored(self, net):
        return self.named(all_weights(net), net.get_weights())

    def loss_function(self, task):
        """Return compute(y, output) -> the loss of each sample, with the arguments in the order of Keras."""

        def compute(y, output):
            return self.loss(task, output, y)

        return compute

    def training_step(self, net, task):
        net.compile(self.optimiser(net, task), self.loss_function(task))
        return net.train_on_batch

    def gradients(self, net, task):
        differentiate = make_gradient_function(net, self.loss_function(task))

        def run(x, y):
            loss, grads = differentiate(x, y)
            return loss, self.named([(layer, layer.trainable_weights) for layer in net.layers], grads)

        return run

    def inference_model(self, net, outputs):
        """Return a model of the layers up to the network's tensors ``outputs``, for inference only."""
        K.set_learning_phase(0)
        x = keras.layers.Input(batch_shape=net.input_shape)
        return keras.Model(x, keras.Model(net.input, outputs)(x))

    def inference_step(self, net, task):
        return self.inference_model(net, self.predict(net, task, net.input)).predict_on_batch

    def activations(self, net, task):
        names = self.layers(task)
        inner = self.inference_model(net, [net.get_layer(name).output for name in names])
        return lambda x: dict(zip(names, map(channels_last, inner.predict_on_batch(x))))


def all_weights(net):
    return [(layer, layer.weights) for layer in net.layers]


def kernel(array):
    """Convert a convolution's weight (out, in, height, width) to Keras' (height, width, in, out)."""
    if BACKEND == "theano":  # true convolution; the other backends compute a cross-correlation
        array = array[:, :, ::-1, ::-1]
    return array.transpose(2, 3, 1, 0)


def channels_last(array):
    return array.transpose(0, 2, 3, 1) if array.ndim == 4 and LAYOUT == "NCHW" else array


def set_training_phase():
    """Fix the learning phase of layers created from now on to training.

    If the phase is chosen at each call, batch normalisation computes both phases and then selects one.
    """
    K.set_learning_phase(1)


def make_gradient_function(net, loss):
    """Return run(x, y) -> (loss, a gradient for each of net.trainable_weights)."""
    y = K.placeholder((None, 1))
    value, weights = K.mean(loss(y, net.output)), net.trainable_weights
    if BACKEND == "cntk":  # CNTK's gradients are not part of a graph

        def run(x, y_true):
            batch = {net.input: x.astype("float32"), y: y_true.reshape(-1, 1).astype("float32")}
            grads, loss = value.grad(batch, wrt=weights, outputs=[value])
            return loss, [grads[weight] for weight in weights]

        return run
    grads = K.gradients(value, weights)
    if BACKEND == "tensorflow":
        import tensorflow as tf

        grads = [tf.convert_to_tensor(grad) for grad in grads]  # an embedding's gradient consists of slices
    compute = K.function([net.input, y], [value] + grads)

    def run_compiled(x, y_true):
        loss, *results = compute([x, y_true.reshape(-1, 1)])
        return loss, results

    return run_compiled

"""ResNet-50 v1.5 in Keras 2: functional, train_on_batch and predict_on_batch; images in the backend's fast layout."""

import keras
import numpy
from keras import layers

from stele_worker.frameworks.keras2 import (
    AXIS,
    LAYOUT,
    cross_entropy,
    kernel,
    make_inference_model,
    outputs,
    set_training_phase,
    weight,
)
from stele_worker.tasks.resnet50 import blocks, convolutions


def convolution(x, name, channels, size, stride):
    padding = "same"
    if size > 1 and stride > 1:  # "same" would pad only the end
        x, padding = layers.ZeroPadding2D(size // 2)(x), "valid"
    return layers.Conv2D(
        channels,
        size,
        strides=stride,
        padding=padding,
        use_bias=False,
        kernel_initializer="zeros",  # load replaces it
        name=name,
    )(x)


def normalisation(x, task, name):
    # one float32 above the Task's epsilon: Theano rejects values below 1e-5, and so the float32 nearest to 1e-5;
    # TensorFlow's kernel for training raises it to 1.001e-5. The running variance, which training does not use,
    # is corrected to unbiased twice on TensorFlow and never on CNTK
    epsilon = float(numpy.nextafter(numpy.float32(task.epsilon), numpy.float32(1)))
    momentum = 1 - task.statistics
    return layers.BatchNormalization(axis=AXIS, momentum=momentum, epsilon=epsilon, name=name)(x)


def relu(x, name=None):
    return layers.Activation("relu", name=name)(x)


def bottleneck(x, task, name, inputs, width, stride):
    outputs = 4 * width
    shortcut = x
    if inputs != outputs:
        shortcut = convolution(x, name + ".downsample.0", outputs, 1, stride)
        shortcut = normalisation(shortcut, task, name + ".downsample.1")
    x = relu(normalisation(convolution(x, name + ".conv1", width, 1, 1), task, name + ".bn1"))
    x = relu(normalisation(convolution(x, name + ".conv2", width, 3, stride), task, name + ".bn2"))
    x = normalisation(convolution(x, name + ".conv3", outputs, 1, 1), task, name + ".bn3")
    return relu(layers.add([x, shortcut]), name)


def network(task):
    set_training_phase()
    size = (task.image, task.image)
    images = layers.Input(size + (3,) if LAYOUT == "NHWC" else (3,) + size)
    x = relu(normalisation(convolution(images, "conv1", 64, 7, 2), task, "bn1"))
    x = layers.ZeroPadding2D(1)(x)  # for the pool: after ReLU, zeros do not change a maximum
    x = layers.MaxPooling2D(3, strides=2, padding="valid", name="pool")(x)  # (batch, 56, 56, 64)
    for name, inputs, width, stride in blocks():
        x = bottleneck(x, task, name, inputs, width, stride)  # finally (batch, 7, 7, 2048)
    x = layers.GlobalAveragePooling2D(name="features")(x)  # (batch, 2048)
    classify = layers.Dense(
        task.classes, activation=None, use_bias=True, kernel_initializer="zeros", name="fc"
    )
    return keras.Model(images, classify(x))  # (batch, 1000)


KINDS = (".weight", ".bias", ".running_mean", ".running_var")


def task_names(layer, values):
    """Return the Task's names of a layer's weights: a convolution has one, fc two, a normalisation two or four."""
    return [layer.name + kind for kind in KINDS[: len(values)]]


def load(net, weights):
    arrays = {"fc": [weights["fc.weight"].T, weights["fc.bias"]]}
    for name, norm, _ in convolutions():
        arrays[name] = [kernel(weights[name + ".weight"])]
        arrays[norm] = [weights[norm + kind] for kind in KINDS]
    # all at once: a TensorFlow session is slow to process additions to a large graph
    net.set_weights([array for layer in net.layers for array in arrays.get(layer.name, ())])
    return net


def named(net, values):
    names = [name for layer in net.layers for name in task_names(layer, layer.trainable_weights)]
    return dict(zip(names, values))


def predictor(net):
    return make_inference_model(net, net.get_layer("features").output)


def training_step(net, task):
    optimiser = keras.optimizers.SGD(task.learning_rate, momentum=task.momentum, nesterov=False, decay=0.0)
    net.compile(optimiser, cross_entropy)
    return net.train_on_batch


def stored(net):
    names = [name for layer in net.layers for name in task_names(layer, layer.weights)]
    return dict(zip(names, net.get_weights()))


def neutral(name, array):
    return weight(array) if array.ndim == 4 else array.T


def activations(net, task):
    return outputs(
        net, {name: name for name in ["pool"] + [row[0] for row in blocks()]}, make_inference_model
    )

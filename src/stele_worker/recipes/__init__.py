"""One Task in one Framework, a page each: ``recipes/<task>/<framework>.py``, found by name.

Every recipe holds the same names in the same order:

LAYOUT                             how it takes images: "NHWC", "NCHW", or None where there are none
network(task)                      the network, its parameters not yet set
load(net, weights) -> net          neutral named arrays (see the Task) into this framework's layout
gradients(net, task) -> run        run(x, y) -> (loss, {parameter: gradient})
training_step(net, task) -> step   step(x, y) -> loss, a scalar; the parameters move
inference_step(net, task) -> step  step(x) -> logits or features, float32
stored(net) -> {parameter: value}  what ``load`` put there, or what training made of it
neutral(name, array) -> array      a parameter's value or gradient, a numpy array, in the Task's layout

and where the framework lets one look inside,

activations(net, task) -> run      run(x) -> {layer: output} of inference, images channels last

Make a step when its turn has come: an eager framework then switches the network to training or inference.
"""

import importlib


def load(task, framework):
    return importlib.import_module("{}.{}.{}".format(__name__, task, framework))

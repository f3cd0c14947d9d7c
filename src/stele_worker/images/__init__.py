"""What ResNet-50, MobileNetV2 and DenseNet-121 share in one framework.

Module by framework, with the same names as far as the framework needs them:

network(task), load(net, weights), stored(net), neutral(name, array)    as in a recipe
convolution(net, name, x, stride)                  without a shift
normalisation(net, name, x, task, ...)             batch normalisation, with the running statistics
pool(x)                                            the largest of 3 x 3, every second
pool_blocks(x, size)                               in JAX: the largest of each block, for three more networks
dense(net, name, x)                                the last layer
"""


def norm_epsilon(task):
    """Return the epsilon of the batch normalisation; that of Adam may be another."""
    return getattr(task, "norm_epsilon", task.epsilon)

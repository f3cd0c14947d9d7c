"""What the recipes with attention share in one framework: layers, and the training step with Adam.

``attention.py`` of a framework, with the same names as far as the framework needs them:

linear(net, name, x)                              a dense layer
norm(net, name, x, task)                          layer normalisation over the last axis
self_attention(net, name, x, task, ...)           query, key and value of one dense layer
cross_attention(net, name, x, memory, task)       to the positions of ``memory``
feed_forward(net, name, x, activation)            two dense layers
"""

EMBEDDINGS = ("embedding.weight", "tokens.weight", "positions.weight", "segments.weight")


def neutral(name, array):
    """Return a dense weight (in, out) in the Task's layout, (out, in), or the other way round; others as they are."""
    return array.T if array.ndim == 2 and name not in EMBEDDINGS else array

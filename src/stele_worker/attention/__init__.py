"""What the recipes with attention share in one framework: layers, and the training step with Adam.

Module by framework, with the same names as far as the framework needs them:

linear(net, name, x)                              a dense layer
norm(net, name, x, task)                          layer normalisation over the last axis
self_attention(net, name, x, task, ...)           query, key and value of one dense layer
cross_attention(net, name, x, memory, task)       to the positions of ``memory``
feed_forward(net, name, x, activation)            two dense layers
"""

"""The decoder of PyTorch, token by token: keys and values are written into one tensor of the full length."""

import torch

from stele_suite.recipes.decoder import torch as decoder
from stele_worker.frameworks.torch.recipe import autocast, compiled


class Recipe(decoder.Recipe):
    def layers(self, task):
        return ()  # each layer is called for each token

    def inference_step(self, net, task):
        net.eval()
        forward = compiled(net)

        def step(tokens):
            batch, length = tokens.shape
            shape = (task.layers, 2, batch, task.heads, length, task.hidden // task.heads)
            caches = torch.empty(shape, dtype=getattr(torch, task.dtype), device=tokens.device)
            with autocast(task):
                for place in range(length):
                    x = forward(tokens[:, place : place + 1], caches, place)
                return net.logits(x[:, -1])  # (batch, vocabulary)

        return torch.inference_mode()(step)

"""PyTorch."""

import inspect

import torch
from torch import nn

from stele_worker.defaults import describe_threads, distribution


def table():
    torch.manual_seed(0)
    dense, convolution, embedding = nn.Linear(1000, 1000), nn.Conv2d(300, 300, 3), nn.Embedding(1000, 1000)
    gru, norm = nn.GRU(500, 400), nn.BatchNorm2d(1)
    return {
        "dense weight": distribution(dense.weight.detach(), 1000),
        "dense bias": distribution(nn.Linear(10, 500000).bias.detach(), 10),
        "convolution weight": distribution(convolution.weight.detach(), 2700),
        "convolution bias": "there" if convolution.bias is not None else "none",
        "convolution padding": convolution.padding,
        "embedding": distribution(embedding.weight.detach(), 1),
        "GRU input weight": distribution(gru.weight_ih_l0.detach(), 400),
        "GRU hidden weight": distribution(gru.weight_hh_l0.detach(), 400),
        "GRU biases": 2 if hasattr(gru, "bias_hh_l0") else 1,
        "GRU layout": "NTC" if gru.batch_first else "TNC",
        "batch normalisation epsilon": norm.eps,
        "batch normalisation momentum": norm.momentum,
        "pool stride": nn.MaxPool2d(2).stride,
        "SGD": optimiser(torch.optim.SGD, "momentum", "nesterov", "weight_decay", "fused", "foreach"),
        "Adam": optimiser(torch.optim.Adam, "betas", "eps", "weight_decay", "fused", "foreach"),
        "cross-entropy": inspect.signature(nn.functional.cross_entropy).parameters["reduction"].default,
        "TF32 in products": torch.backends.cuda.matmul.allow_tf32,
        "TF32 in cuDNN": torch.backends.cudnn.allow_tf32,
        "float32 products": torch.get_float32_matmul_precision(),
        "cuDNN autotune": torch.backends.cudnn.benchmark,
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "threads": describe_threads(torch.get_num_threads()),
        "default dtype": torch.get_default_dtype(),
        "int32 + float32": (torch.zeros(1, dtype=torch.int32) + torch.zeros(1)).dtype,
        "int64 + float16": (torch.zeros(1, dtype=torch.int64) + torch.zeros(1, dtype=torch.float16)).dtype,
        "float16 + bfloat16": (torch.zeros(1, dtype=torch.float16) + torch.zeros(1, dtype=torch.bfloat16)).dtype,
        "1 / 2 of int32": (torch.ones(1, dtype=torch.int32) / 2).dtype,
        "compile": "eager; torch.compile by {}".format(compile_mode()),
    }


def optimiser(kind, *names):
    parameters = inspect.signature(kind).parameters
    return ", ".join("{} {}".format(name, parameters[name].default) for name in names if name in parameters)


def compile_mode():
    parameters = inspect.signature(torch.compile).parameters
    return ", ".join("{} {}".format(name, parameters[name].default) for name in ("backend", "mode", "dynamic"))

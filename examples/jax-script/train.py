"""Train a small network, and report the speed and the loss to Stele, if it runs this script."""

import json
import os
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy

STEPS, BATCH, WIDTH = 200, 256, 256
random = numpy.random.RandomState(0)
images = random.standard_normal((BATCH, WIDTH)).astype("float32")
labels = random.randint(0, 10, BATCH)
weights = [random.standard_normal(shape).astype("float32") / 16 for shape in ((WIDTH, WIDTH), (WIDTH, 10))]


def loss_of(weights, images, labels):
    scores = jax.nn.relu(images @ weights[0]) @ weights[1]
    return -jax.nn.log_softmax(scores)[jnp.arange(BATCH), labels].mean()


@jax.jit
def step(weights, images, labels):
    loss, gradients = jax.value_and_grad(loss_of)(weights, images, labels)
    return loss, [weight - 0.1 * gradient for weight, gradient in zip(weights, gradients, strict=True)]


def report(**line):
    with Path(os.environ.get("STELE_REPORT", os.devnull)).open("a") as file:
        print(json.dumps(line), file=file)


loss, weights = step(weights, images, labels)  # compiles
start = time.perf_counter()
for number in range(STEPS):
    loss, weights = step(weights, images, labels)
    if number % 50 == 0:
        report(value="loss", step=number, number=float(loss))
jax.block_until_ready(weights)
report(metric="samples_per_second", value=STEPS * BATCH / (time.perf_counter() - start), better="higher")
print(f"loss {float(loss):.4f}")

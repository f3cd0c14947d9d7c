"""The example of docs/your-recipe.md, and a complete recipe in NumPy, for tests that need no framework."""

import re
import subprocess
import sys
import textwrap
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs/your-recipe.md"


def run_pytest(folder, variables, *options, timeout):
    """Run pytest in the project of a user, on the CPU, and return what it prints."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "-rs",
        "--stele-device=cpu",
        *options,
    ]
    return subprocess.run(
        command, cwd=folder, env=variables, capture_output=True, text=True, check=False, timeout=timeout
    ).stdout


NUMPY = """
import numpy as np


def network(task):
    return {}


def load(net, weights):
    net.update({name: array.astype(float) for name, array in weights.items()})
    return net


def forward(net, x):
    hidden = np.maximum(x @ net["0.weight"].T + net["0.bias"], 0)
    return hidden, hidden @ net["2.weight"].T + net["2.bias"]


def gradients(net, task):
    def run(x, y):
        hidden, logits = forward(net, x)
        likely = np.exp(logits - logits.max(1, keepdims=True))
        likely /= likely.sum(1, keepdims=True)
        loss = -np.log(likely[np.arange(len(y)), y]).mean()
        likely[np.arange(len(y)), y] -= 1
        last = likely / len(y)
        first = (last @ net["2.weight"]) * (hidden > 0)
        grads = {"0.weight": first.T @ x, "0.bias": first.sum(0), "2.weight": last.T @ hidden, "2.bias": last.sum(0)}
        return loss, grads

    return run


def training_step(net, task):
    run = gradients(net, task)

    def step(x, y):
        loss, grads = run(x, y)
        for name, grad in grads.items():
            net[name] = net[name] - task.learning_rate * grad
        return loss

    return step


def inference_step(net, task):
    return lambda x: forward(net, x)[1].astype(np.float32)


def stored(net):
    return net
"""


def example(heading="Example"):
    """Return {path: content} of the files in a section of the documentation."""
    section = PAGE.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return dict(re.findall(r"```python\n# (\S+)\n(.*?)```", section, re.S))


def write(folder, files):
    """Write files below a folder, with the indentation removed."""
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(textwrap.dedent(content))


def described(folder, task, framework, **changes):
    """Return the host's dict of a recipe, with its task file if there is one."""
    recipe, file = folder / f"recipes/{task}/{framework}.py", folder / f"tasks/{task}.py"
    empty = dict.fromkeys(("inputs", "optimizer", "pretrained", "weights"))
    found = {"recipe": str(recipe), "task": str(file) if file.is_file() else None}
    return {"spec": f"recipes/{task}/{framework}.py", "folder": str(folder), **empty, **found, **changes}

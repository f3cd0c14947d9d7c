"""Install the packages of old.txt and new.txt, and let both compute the same steps in turns. See ISSUE.md."""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
SETUP, STEPS = json.loads((HERE / "setup.json").read_text(encoding="utf-8")), 24
PYTHON = {arm: str(HERE / arm / "bin" / "python") for arm in ("old", "new")}


def compute(arm, task, phase):
    """Compute a step for each line of the input, and answer with its seconds."""
    fields, answers = SETUP["arms"][arm], os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the framework prints is no answer
    sys.path.insert(0, str(HERE / "code"))
    from stele_worker import frameworks, measurement, subjects

    framework = frameworks.load(fields["framework"])
    framework.configure(fields["settings"])
    model = SETUP["model"] and dict(SETUP["model"], folder=str(HERE / "model"))
    subject = subjects.find(framework, task, SETUP["scale"], 0, SETUP["dtype"], fields["forms"].get(task), model)
    recipe, arrays = subject.recipe, subject.arrange(subject.parity_batch())
    net = recipe.load(recipe.network(subject.task), subject.weights(None, arrays))
    step = (recipe.training_step if phase == "train" else recipe.inference_step)(net, subject.task)
    inputs = arrays if phase == "train" else measurement.inputs_of(subject.task, arrays)
    batch = [framework.put(array) for array in inputs]
    for _ in sys.stdin:
        began = time.perf_counter()
        framework.wait(step(*batch))
        print(time.perf_counter() - began, file=answers, flush=True)


def launch(*cell):
    """Return NEW / OLD of the median steps of two new processes; the first third of the steps is warm-up."""
    workers, seconds = {}, {"old": [], "new": []}
    for arm in PYTHON:
        command, variables = [PYTHON[arm], __file__, arm, *cell], dict(os.environ, **SETUP["arms"][arm]["variables"])
        workers[arm] = subprocess.Popen(command, env=variables, stdin=-1, stdout=-1, universal_newlines=True)
    for arm in ("old", "new") * STEPS:
        print(file=workers[arm].stdin, flush=True)
        seconds[arm].append(float(workers[arm].stdout.readline()))
    [worker.communicate() for worker in workers.values()]
    old, new = (statistics.median(seconds[arm][STEPS // 3 :]) for arm in PYTHON)
    print("{} {}: {:.2f} ms in OLD, {:.2f} ms in NEW".format(*cell, 1e3 * old, 1e3 * new), flush=True)
    return new / old


if sys.argv[3:]:
    sys.exit(compute(*sys.argv[1:]))
for arm in PYTHON:
    subprocess.check_call([sys.executable, "-m", "venv", str(HERE / arm)])
    subprocess.check_call([PYTHON[arm], "-m", "pip", "install", "-q", "--no-deps", "-r", str(HERE / (arm + ".txt"))])
for cell in SETUP["cells"]:
    ratios = sorted(launch(*cell) for _ in range(int(sys.argv[1]) if sys.argv[1:] else 6))
    print("{} {}: NEW / OLD {:.3f} [{:.3f} {:.3f}]".format(*cell, statistics.median(ratios), ratios[0], ratios[-1]))

"""Install the packages of old.txt and new.txt, and let both compute the same steps in turns. See ISSUE.md.

    python reproduce.py [LAUNCHES]

A launch has one process for OLD and one for NEW. By default there are 6 launches for each task and phase.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
SETUP = json.loads((HERE / "setup.json").read_text(encoding="utf-8"))
ARMS = ("old", "new")
STEPS = 24  # of each arm in a launch; the first third is warm-up
LAUNCHES = 6


def main(launches=LAUNCHES):
    """Print the time of a step in both arms for each task and phase, and the ratio of all launches."""
    for arm in ARMS:
        subprocess.check_call([sys.executable, "-m", "venv", str(HERE / arm)])
        requirements = str(HERE / (arm + ".txt"))
        subprocess.check_call([python_of(arm), "-m", "pip", "install", "-q", "--no-deps", "-r", requirements])
    for task, phase in SETUP["cells"]:
        ratios = sorted(launch(task, phase) for _ in range(launches))
        middle = statistics.median(ratios)
        print(f"{task} {phase}: NEW / OLD {middle:.3f} [{ratios[0]:.3f} {ratios[-1]:.3f}]")


def python_of(arm):
    return str(HERE / arm / "bin" / "python")


def launch(task, phase):
    """Return NEW / OLD of the median steps of two new processes."""
    workers = {arm: start(arm, task, phase) for arm in ARMS}
    seconds = {arm: [] for arm in ARMS}
    for arm in ARMS * STEPS:
        print(file=workers[arm].stdin, flush=True)
        seconds[arm].append(float(workers[arm].stdout.readline()))
    for worker in workers.values():
        worker.communicate()
    old, new = (statistics.median(seconds[arm][STEPS // 3 :]) for arm in ARMS)
    print(f"{task} {phase}: {1e3 * old:.2f} ms in OLD, {1e3 * new:.2f} ms in NEW", flush=True)
    return new / old


def start(arm, task, phase):
    """Start a process of an arm. It computes one step for each line that it receives."""
    return subprocess.Popen(
        [python_of(arm), __file__, arm, task, phase],
        env=dict(os.environ, **SETUP["arms"][arm]["variables"]),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        universal_newlines=True,
    )


def compute(arm, task, phase):
    """Compute a step for each line of the input, and answer with its seconds."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the framework prints is no answer
    step, batch, framework = prepared(SETUP["arms"][arm], task, phase)
    for _ in sys.stdin:
        began = time.perf_counter()
        framework.wait(step(*batch))
        print(time.perf_counter() - began, file=answers, flush=True)


def prepared(fields, task, phase):
    """Return the step, its batch and the framework."""
    sys.path.insert(0, str(HERE / "code"))
    from stele_worker import frameworks, measurement, subjects

    framework = frameworks.load(fields["framework"])
    framework.configure(fields["settings"])
    model = SETUP["model"] and dict(SETUP["model"], folder=str(HERE / "model"))
    subject = subjects.find(framework, task, SETUP["scale"], 0, SETUP["dtype"], fields["forms"].get(task), model)
    recipe = subject.recipe
    arrays = subject.arrange(subject.parity_batch())
    net = recipe.load(recipe.network(subject.task), subject.weights(None, arrays))
    if phase == "train":
        step, inputs = recipe.training_step(net, subject.task), arrays
    else:
        step, inputs = recipe.inference_step(net, subject.task), measurement.inputs_of(subject.task, arrays)
    return step, [framework.put(array) for array in inputs], framework


if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1] in ARMS:
        compute(*sys.argv[1:])
    else:
        main(*map(int, sys.argv[1:]))

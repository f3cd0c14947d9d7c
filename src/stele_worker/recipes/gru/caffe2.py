"""GRU on IMDB in Caffe2: one net per step, Caffe2's GRU cell in a RecurrentNetwork, time before batch."""

import numpy
from caffe2.python import brew, core, gru_cell, workspace

from stele_worker.frameworks.caffe2 import CPU, empty_model, make_runner, with_threads

LAYOUT = None

BLOBS = {
    "embedding.weight": ["embedding"],
    "gru.input_weight": ["gru/i2h_w"],
    "gru.hidden_weight": ["gru/reset_gate_t_w", "gru/update_gate_t_w", "gru/output_gate_t_w"],
    "gru.input_bias": ["gru/i2h_b"],
    "gru.hidden_bias": ["gru/reset_gate_t_b", "gru/update_gate_t_b", "gru/output_gate_t_b"],
    "dense.weight": ["dense_w"],
    "dense.bias": ["dense_b"],
}


def network(task):
    return {}  # lists of blobs by name: forward adds the layers, operators on them


def load(net, weights):
    for name, array in weights.items():
        net[name] = BLOBS[name]
        for blob, part in zip(net[name], numpy.split(array, len(net[name]))):
            workspace.FeedBlob(blob, part, CPU)
    return net


def forward(model, task, is_test):
    x = model.net.Transpose("x", "tokens", axes=(1, 0))  # (150, batch)
    x = model.net.FlattenToVec(x, "token")  # a dense gradient needs the rows as a vector
    x = model.net.Gather(["embedding", x], "embedded", dense_gradient=1)
    x, _ = model.net.Reshape(x, ["sequence", "shape"], shape=(task.length, -1, task.embedding))
    start = model.net.ConstantFill([], "start", shape=(task.hidden,), value=0.0)
    _, x = gru_cell.GRU(
        model,
        x,  # (150, batch, 125)
        seq_lengths=None,
        initial_states=[start],
        dim_in=task.embedding,
        dim_out=task.hidden,
        scope="gru",
        outputs_with_grads=(1,),  # only the last state
        forward_only=is_test,
        linear_before_reset=True,
    )
    x = model.net.Squeeze(x, "last", dims=(0,))  # (batch, 100)
    return brew.fc(model, x, "dense", task.hidden, 2)  # (batch, 2)


def cross_entropy(model, task):
    logits = forward(model, task, is_test=False)
    _, loss = model.net.SoftmaxWithLoss([logits, "y"], ["probabilities", "loss"])
    return loss


def gradients(net, task):
    model = empty_model("gradients", CPU)  # this oneDNN has no recurrence
    loss = cross_entropy(model, task)
    grads = model.AddGradientOperators([loss])
    run_net = make_runner(with_threads(model))

    def run(x, y):
        run_net(x=x, y=y)
        fetched = {
            name: numpy.concatenate([workspace.FetchBlob(grads[blob]) for blob in blobs])
            for name, blobs in net.items()
        }
        return workspace.FetchBlob(loss), fetched

    return run


def adam(weights, grads, task):
    """Return update(), which changes the weights in place."""
    for weight in weights:
        for moment in ("_mean", "_square"):
            workspace.FeedBlob(weight + moment, numpy.zeros_like(workspace.FetchBlob(weight)), CPU)
    workspace.FeedBlob("rate", numpy.array([-task.learning_rate], numpy.float32), CPU)
    count = 0

    def update():
        nonlocal count
        workspace.FeedBlob("count", numpy.array([count], numpy.int64), CPU)
        count += 1
        # the operator adds epsilon before the correction, the Task after: so correct epsilon
        epsilon = task.epsilon * (1 - task.beta2**count) ** 0.5
        constants = {"beta1": task.beta1, "beta2": task.beta2, "epsilon": epsilon}
        for weight in weights:
            state = [weight, weight + "_mean", weight + "_square"]
            inputs = state + [grads[weight], "rate", "count"]
            workspace.RunOperatorOnce(core.CreateOperator("Adam", inputs, state, **constants))

    return update


def training_step(net, task):
    model = empty_model("train", CPU)
    loss = cross_entropy(model, task)
    grads = model.AddGradientOperators([loss])
    update = adam([blob for blobs in net.values() for blob in blobs], grads, task)
    run_net = make_runner(with_threads(model))

    def step(x, y):
        run_net(x=x, y=y)
        update()
        return workspace.FetchBlob(loss)

    return step


def inference_step(net, task):
    model = empty_model("infer", CPU)
    logits = forward(model, task, is_test=True)
    run_net = make_runner(with_threads(model))

    def step(x):
        run_net(x=x)
        return workspace.FetchBlob(logits)

    return step


def stored(net):
    return {
        name: numpy.concatenate([workspace.FetchBlob(blob) for blob in blobs]) for name, blobs in net.items()
    }


def neutral(name, array):
    return array  # Caffe2 has the Task's layouts

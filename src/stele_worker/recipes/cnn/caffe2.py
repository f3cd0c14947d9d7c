"""CNN on CIFAR-10 in Caffe2: one net per step, channels first, on oneDNN's operators."""

from caffe2.python import brew, optimizer, workspace

from stele_worker.frameworks import caffe2
from stele_worker.frameworks.caffe2 import dropout, empty_model, make_runner, with_plain_gradients

LAYOUT = "NCHW"


def network(task):
    return {}  # blobs by name: forward adds the layers, operators on them


def load(net, weights):
    for name, array in weights.items():
        net[name] = name.replace(".weight", "_w").replace(".bias", "_b")  # brew's names
        workspace.FeedBlob(net[name], array, caffe2.device)
    return net


def forward(model, task, is_test):
    conv = {"kernel": 3, "stride": 1, "pad": 1, "training_mode": int(not is_test)}
    pool = {"kernel": 2, "stride": 2, "pad": 0}
    # "x": (batch, 3, 32, 32)
    x = brew.conv(model, "x", "conv1", 3, 50, no_gradient_to_input=1, **conv)
    x = brew.relu(model, x, x)  # (batch, 50, 32, 32)
    x = brew.conv(model, x, "conv2", 50, 50, **conv)
    x = brew.max_pool(model, x, "pool2", **pool)  # (batch, 50, 16, 16)
    x = brew.relu(model, x, "relu2")  # not in place, because the pool's gradient needs its output
    if not is_test:
        x = dropout(model, x, (50, 16, 16), task.dropout[0], seed=3 * task.seed)
    x = brew.conv(model, x, "conv3", 50, 100, **conv)
    x = brew.relu(model, x, x)  # (batch, 100, 16, 16)
    x = brew.conv(model, x, "conv4", 100, 100, **conv)
    x = brew.max_pool(model, x, "pool4", **pool)  # (batch, 100, 8, 8)
    x = brew.relu(model, x, "relu4")
    if not is_test:
        x = dropout(model, x, (100, 8, 8), task.dropout[1], seed=3 * task.seed + 1)
    x = brew.fc(model, x, "dense1", 6400, 512, training_mode=int(not is_test))  # flattens
    x = brew.relu(model, x, x)
    if not is_test:
        x = dropout(model, x, (512,), task.dropout[2], seed=3 * task.seed + 2)
    return brew.fc(model, x, "dense2", 512, 10, training_mode=int(not is_test))  # (batch, 10)


def cross_entropy(model, task):
    logits = forward(model, task, is_test=False)
    _, loss = model.net.SoftmaxWithLoss([logits, "y"], ["probabilities", "loss"])
    return loss


def gradients(net, task):
    model = empty_model("gradients", caffe2.device, net.values())
    loss = cross_entropy(model, task)
    grads = model.AddGradientOperators([loss])
    run_net = make_runner(model)

    def run(x, y):
        run_net(x=x, y=y)
        fetched = {name: workspace.FetchBlob(grads[blob]) for name, blob in net.items()}
        return workspace.FetchBlob(loss), fetched

    return run


def training_step(net, task):
    model = empty_model("train", caffe2.device, net.values())
    loss = cross_entropy(model, task)
    model.AddGradientOperators([loss])
    optimizer.build_sgd(
        with_plain_gradients(model),
        base_learning_rate=task.learning_rate,
        policy="fixed",
        momentum=task.momentum,
        nesterov=False,
    )
    workspace.RunNetOnce(model.param_init_net)
    run_net = make_runner(model)

    def step(x, y):
        run_net(x=x, y=y)
        return workspace.FetchBlob(loss)

    return step


def inference_step(net, task):
    model = empty_model("infer", caffe2.device, net.values())
    logits = forward(model, task, is_test=True)
    run_net = make_runner(model)

    def step(x):
        run_net(x=x)
        return workspace.FetchBlob(logits)

    return step


def stored(net):
    return {name: workspace.FetchBlob(blob) for name, blob in net.items()}


def neutral(name, array):
    return array  # Caffe2 has the Task's layouts

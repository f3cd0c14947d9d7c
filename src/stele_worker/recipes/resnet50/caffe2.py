"""ResNet-50 v1.5 in Caffe2: one net per step, channels first, on oneDNN's operators."""

from caffe2.python import brew, optimizer, workspace

from stele_worker.frameworks import caffe2
from stele_worker.frameworks.caffe2 import empty_model, make_runner, with_plain_gradients
from stele_worker.tasks.resnet50 import blocks

LAYOUT = "NCHW"


def convolution(model, x, name, inputs, outputs, size, stride, is_test):
    return brew.conv(
        model,
        x,
        name,
        inputs,
        outputs,
        kernel=size,
        stride=stride,
        pad=size // 2,
        no_bias=True,
        no_gradient_to_input=int(x == "x"),
        training_mode=int(not is_test),
    )


def normalisation(model, task, x, name, channels, is_test):
    # in training oneDNN updates the running variance by the biased variance, the Task by the unbiased
    momentum = 1 - task.statistics  # weight of the old running statistics in an update
    return brew.spatial_bn(model, x, name, channels, epsilon=task.epsilon, momentum=momentum, is_test=is_test)


def bottleneck(model, task, x, name, inputs, width, stride, is_test):
    outputs, shortcut = 4 * width, x
    if inputs != outputs:
        shortcut = convolution(model, x, name + ".downsample.0", inputs, outputs, 1, stride, is_test)
        shortcut = normalisation(model, task, shortcut, name + ".downsample.1", outputs, is_test)
    x = convolution(model, x, name + ".conv1", inputs, width, 1, 1, is_test)
    x = normalisation(model, task, x, name + ".bn1", width, is_test)
    x = brew.relu(model, x, x)
    x = convolution(model, x, name + ".conv2", width, width, 3, stride, is_test)
    x = normalisation(model, task, x, name + ".bn2", width, is_test)
    x = brew.relu(model, x, x)
    x = convolution(model, x, name + ".conv3", width, outputs, 1, 1, is_test)
    x = normalisation(model, task, x, name + ".bn3", outputs, is_test)
    x = brew.sum(model, [x, shortcut], x)
    return brew.relu(model, x, x)


def features(model, task, is_test):
    x = convolution(model, "x", "conv1", 3, 64, 7, 2, is_test)  # (batch, 64, 112, 112)
    x = normalisation(model, task, x, "bn1", 64, is_test)
    x = brew.relu(model, x, x)
    x = brew.max_pool(model, x, "pool1", kernel=3, stride=2, pad=1)  # (batch, 64, 56, 56)
    for name, inputs, width, stride in blocks():
        x = bottleneck(model, task, x, name, inputs, width, stride, is_test)
    x = brew.average_pool(model, x, "average", kernel=7, stride=1, pad=0)  # from (batch, 2048, 7, 7)
    return model.net.Flatten(x, "features", axis=1)  # (batch, 2048)


def network(task):
    return {}  # blobs by name: features adds the layers, operators on them


PARTS = {"weight": "_w", "bias": "_b", "running_mean": "_rm", "running_var": "_riv"}  # brew's names


def load(net, weights):
    for name, array in weights.items():
        layer, part = name.rsplit(".", 1)
        scale = part == "weight" and array.ndim == 1
        net[name] = layer + ("_s" if scale else PARTS[part])
        workspace.FeedBlob(net[name], array, caffe2.device)
    return net


def cross_entropy(model, task):
    x = features(model, task, is_test=False)
    logits = brew.fc(model, x, "fc", task.features, task.classes, training_mode=1)  # (batch, 1000)
    _, loss = model.net.SoftmaxWithLoss([logits, "y"], ["probabilities", "loss"])
    return loss


def gradients(net, task):
    model = empty_model("gradients", caffe2.device, net.values())
    loss = cross_entropy(model, task)
    grads = model.AddGradientOperators([loss])
    run_net = make_runner(model)

    def run(x, y):
        run_net(x=x, y=y)
        fetched = {name: workspace.FetchBlob(grads[blob]) for name, blob in net.items() if blob in grads}
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
    output = features(model, task, is_test=True)
    run_net = make_runner(model)

    def step(x):
        run_net(x=x)
        return workspace.FetchBlob(output)

    return step


def stored(net):
    return {name: workspace.FetchBlob(blob) for name, blob in net.items()}


def neutral(name, array):
    return array  # Caffe2 has the Task's layouts

"""CNN on CIFAR-10 in Caffe2: one net per step, channels first, on oneDNN's operators."""

from caffe2.python import brew

from stele_worker.frameworks.caffe2.recipe import Caffe2Recipe, cross_entropy, dropout, sgd


class Recipe(Caffe2Recipe):
    LAYOUT = "NCHW"

    def forward(self, model, task, x):
        conv, pool = {"kernel": 3, "stride": 1, "pad": 1}, {"kernel": 2, "stride": 2, "pad": 0}
        rates, seed = task.dropout, 3 * task.seed
        # "x": (batch, 3, 32, 32)
        x = brew.conv(model, x, "conv1", 3, 50, no_gradient_to_input=1, **conv)
        x = brew.relu(model, x, x)  # (batch, 50, 32, 32)
        x = brew.conv(model, x, "conv2", 50, 50, **conv)
        x = brew.max_pool(model, x, "pool2", **pool)  # (batch, 50, 16, 16)
        x = brew.relu(model, x, "relu2")  # not in place, because the pool's gradient needs its output
        x = dropout(model, x, (50, 16, 16), rates[0], seed)
        x = brew.conv(model, x, "conv3", 50, 100, **conv)
        x = brew.relu(model, x, x)  # (batch, 100, 16, 16)
        x = brew.conv(model, x, "conv4", 100, 100, **conv)
        x = brew.max_pool(model, x, "pool4", **pool)  # (batch, 100, 8, 8)
        x = brew.relu(model, x, "relu4")
        x = dropout(model, x, (100, 8, 8), rates[1], seed + 1)
        x = brew.fc(model, x, "dense1", 6400, 512)  # flattens
        x = brew.relu(model, x, x)
        x = dropout(model, x, (512,), rates[2], seed + 2)
        return brew.fc(model, x, "dense2", 512, 10)  # (batch, 10)

    def loss(self, task, output, y):
        return cross_entropy(output, y)

    def optimiser(self, model, task):
        return sgd(model, task)

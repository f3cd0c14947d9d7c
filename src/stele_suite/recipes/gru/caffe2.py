"""GRU on IMDB in Caffe2: one net per step, Caffe2's GRU cell in a RecurrentNetwork, time before batch."""

import numpy
from caffe2.python import brew, core, gru_cell, workspace

from stele_worker.frameworks.caffe2.framework import CPU
from stele_worker.frameworks.caffe2.recipe import Caffe2Recipe, cross_entropy


class Recipe(Caffe2Recipe):
    BLOBS = {
        "gru.input_weight": ["gru/i2h_w"],
        "gru.hidden_weight": ["gru/reset_gate_t_w", "gru/update_gate_t_w", "gru/output_gate_t_w"],
        "gru.input_bias": ["gru/i2h_b"],
        "gru.hidden_bias": ["gru/reset_gate_t_b", "gru/update_gate_t_b", "gru/output_gate_t_b"],
    }

    def device(self):
        return CPU  # this oneDNN has no recurrence

    def forward(self, model, task, x):
        x = model.net.Transpose(x, "tokens", axes=(1, 0))  # (150, batch)
        x = model.net.FlattenToVec(x, "token")  # a dense gradient needs the rows as a vector
        x = model.net.Gather(["embedding_w", x], "embedded", dense_gradient=1)
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
            forward_only=not model.training,
            linear_before_reset=True,
        )
        x = model.net.Squeeze(x, "last", dims=(0,))  # (batch, 100)
        return brew.fc(model, x, "dense", task.hidden, 2)  # (batch, 2)

    def loss(self, task, output, y):
        return cross_entropy(output, y)

    def optimiser(self, model, task):
        for weight in model.gradients:
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
            for weight, gradient in model.gradients.items():
                state = [weight, weight + "_mean", weight + "_square"]
                inputs = state + [gradient, "rate", "count"]
                workspace.RunOperatorOnce(core.CreateOperator("Adam", inputs, state, **constants))

        return update

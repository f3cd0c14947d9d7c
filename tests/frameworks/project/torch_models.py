"""A user's project in PyTorch."""

import torch
from torch import nn


class TwoInputs(nn.Module):
    def __init__(self):
        super().__init__()
        self.dense = nn.Linear(8, 16)
        self.tokens = nn.Embedding(50, 16)
        self.unused = nn.Linear(2, 2)
        self.head = nn.Linear(16, 5)

    def forward(self, x, ids):
        return self.head(torch.relu(self.dense(x)) + self.tokens(ids).mean(1))

    @staticmethod
    def example_inputs():
        return {"x": torch.zeros(4, 8), "ids": torch.full((4, 6), 49)}


def image():
    layers = [nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.Dropout(0.5), nn.Flatten()]
    return nn.Sequential(*layers, nn.Linear(8 * 62 * 62, 7))


class Attention(nn.Module):
    """Dropout by functions alone, one of them imported by its name."""

    def __init__(self):
        super().__init__()
        self.project = nn.Linear(16, 48)
        self.gru = nn.GRU(16, 16, num_layers=2, dropout=0.5, batch_first=True)

    def forward(self, x):
        q, k, v = self.project(x).chunk(3, -1)
        x = nn.functional.scaled_dot_product_attention(q, k, v, dropout_p=0.5 if self.training else 0.0)
        return self.gru(nn.functional.dropout(x, 0.5, self.training))


class Tiny(nn.Module):
    """As nanoGPT: logits of the last token and no loss, or all logits and the loss."""

    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(30, 16)
        self.head = nn.Linear(16, 30, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, idx, targets=None):
        x = self.tokens(idx)
        if targets is None:
            return self.head(x[:, [-1]]), None
        logits = self.head(x)
        return logits, nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


class Several(nn.Module):
    """Returns logits, boxes and a spectrum, in which the batch is the second axis."""

    def __init__(self):
        super().__init__()
        self.dense = nn.Linear(8, 5)

    def forward(self, x):
        logits = self.dense(x)
        return {
            "logits": logits,
            "heads": (torch.sigmoid(logits), None),
            "spectrum": torch.fft.fft(logits).mT,
        }


class Told(nn.Module):
    """Computes something else in training, as its flag says."""

    def __init__(self):
        super().__init__()
        self.dense = nn.Linear(8, 5)

    def forward(self, x, is_training=False):
        return self.dense(x) * (2 if is_training else 1)


class OwnTraining(Told):
    """As a LightningModule."""

    def training_step(self, batch):
        return self.dense(batch).sum()


class Regression(nn.Module):
    def __init__(self):
        super().__init__()
        self.dense = nn.Linear(5, 1)

    def forward(self, x):
        return self.dense(x)


class Named(nn.Module):
    """Two inputs of which nothing is known."""

    def forward(self, left, right):
        return left @ right


frozen = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 3))
for weight in frozen[0].parameters():
    weight.requires_grad = False


def broken():
    raise KeyError("no such width")


def needs(width, depth=2):
    return nn.Linear(width, depth)


def nothing():
    return {"a": 1}


class Wrong(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(10, 20)
        self.second = nn.Linear(10, 20)

    def forward(self, x):
        return self.second(self.first(x))

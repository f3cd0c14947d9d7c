"""A user's project in Paddle."""

import paddle
from paddle import nn


class TwoInputs(nn.Layer):
    def __init__(self):
        super().__init__()
        self.dense = nn.Linear(8, 16)
        self.tokens = nn.Embedding(50, 16)
        self.unused = nn.Linear(2, 2)
        self.head = nn.Linear(16, 5)

    def forward(self, x, ids):
        return self.head(nn.functional.relu(self.dense(x)) + self.tokens(ids).mean(1))

    @staticmethod
    def example_inputs():
        return {"x": paddle.zeros([4, 8]), "ids": paddle.full([4, 6], 49, "int64")}


def image():
    layers = [nn.Conv2D(3, 8, 3), nn.BatchNorm2D(8), nn.ReLU(), nn.Dropout(0.5), nn.AdaptiveAvgPool2D(4)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(8 * 16, 7))


class Attention(nn.Layer):
    def __init__(self):
        super().__init__()
        self.dense = nn.Linear(16, 16)
        self.attention = nn.MultiHeadAttention(16, 2, dropout=0.5)

    def forward(self, x):
        x = self.dense(x).reshape([4, 8, 16])
        return {"logits": self.attention(x)}


class WithLoss(nn.Layer):
    def __init__(self):
        super().__init__()
        self.dense = nn.Linear(10, 4)

    def forward(self, x, labels=None):
        logits = self.dense(x)
        return logits if labels is None else (nn.functional.cross_entropy(logits, labels), logits)


class Several(nn.Layer):
    """Two outputs, and a flag that changes the first."""

    def __init__(self):
        super().__init__()
        self.dense = nn.Linear(8, 5)
        self.dropout = 0.5  # no layer of Paddle

    def forward(self, x, train=False):
        logits = self.dense(x) * self.dropout
        return logits * (2 if train else 1), nn.functional.sigmoid(logits)


built = image()


def broken():
    raise KeyError("no such width")


class Unknown(nn.Layer):
    def forward(self, left, right):
        return left @ right

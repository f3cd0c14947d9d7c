"""A network of three layers in flax; its training and inference steps are derived."""

from flax import linen


class Net(linen.Module):
    @linen.compact
    def __call__(self, points):
        hidden = linen.relu(linen.Dense(128, name="first")(4 * points))
        hidden = linen.relu(linen.Dense(128, name="second")(hidden))
        return linen.Dense(3, name="spirals")(hidden)


def network():
    return Net()

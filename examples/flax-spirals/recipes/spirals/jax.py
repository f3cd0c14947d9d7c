"""A network of three layers in flax. Stele derives its training and its inference."""

from flax import linen


class Net(linen.Module):
    classes: int

    @linen.compact
    def __call__(self, points):
        hidden = linen.relu(linen.Dense(128, name="first")(4 * points))
        hidden = linen.relu(linen.Dense(128, name="second")(hidden))
        return linen.Dense(self.classes, name="last")(hidden)


def network(task):
    return Net(task.spirals)

"""Does ``stele explain`` name the operation that makes a release slower? Writes docs/results/explanations.md.

    python -m checks explanations [--case NAME] [--write]

Each case compares two environments whose difference is known: two changes that are planted into PyTorch, a release of
JAX, and Keras beside its backend. Without ``--case``, only the planted ones. Exit: 0 the operation is named, or the
default; 1 it is not.
"""

import argparse
import sys
from pathlib import Path
from typing import Any, NamedTuple

from planting import planted, provenance, quoted, run_stele

from stele.report import page

PAGE = Path(__file__).parents[1] / "docs/results/explanations.md"
CHANGES = ("operator", "default")  # that are planted


class Case(NamedTuple):
    """A comparison, and what must be named: the first operations, or something else that differs."""

    title: str
    arguments: str
    named: str
    among: int = 1  # so many operations at the top

    @property
    def command(self) -> str:
        return f"explain {self.arguments}"


CASES = {
    "operator": Case(
        "An operator of PyTorch that takes longer is planted: the gradient of ReLU.",
        "torch torch-operator --task cnn --phase train --scale study",
        "aten::threshold_backward",
    ),
    "default": Case(
        "A changed default is planted into PyTorch: oneDNN is off.",
        "torch torch-default --task cnn --phase train --scale study",
        "flags: onednn: True → False",
    ),
    "jax": Case(
        "JAX 0.9.2 computes the gradients of convolutions with YNNPACK.",
        "jax-as-shipped@jax==0.8.0 jax-as-shipped@jax==0.9.2 --task cnn --phase train",
        "convolution",
    ),
    "keras": Case(
        "The optimizer of Keras updates one variable of PyTorch after the other; that of PyTorch updates all at once.",
        "torch keras-torch --task gru --phase train",
        "aten::add_",
        among=3,
    ),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", choices=[*CASES, "all"])
    parser.add_argument("--write", action="store_true", help="write docs/results/explanations.md")
    arguments = parser.parse_args()
    names = {"all": list(CASES), None: list(CHANGES)}.get(arguments.case, [arguments.case])
    with planted(*CHANGES) as variables:
        outcomes = {name: explain(CASES[name], variables) for name in names}
    for name, (_, found) in outcomes.items():
        print(f"{name}: {CASES[name].named} is {'named' if found else 'NOT named'}")
    if arguments.write:
        page.fill(
            PAGE,
            "\n\n".join([*(section(CASES[name], out) for name, (out, _) in outcomes.items()), provenance()]),
        )
    return 0 if all(found for _, found in outcomes.values()) else 1


def explain(case: Case, variables: dict[str, str]) -> tuple[str, bool]:
    """Return what the command prints, and whether it names what it must."""
    output, content = run_stele(case.command, variables)
    return output, is_named(case, content)


def is_named(case: Case, content: dict[str, Any]) -> bool:
    [cell] = content["cells"].values()
    operations = [operation["name"] for operation in cell["operations"][: case.among]]
    return case.named in [*operations, *content["differs"]]


def section(case: Case, output: str) -> str:
    return f"{case.title}\n\n{quoted(case.command, output)}"


if __name__ == "__main__":
    sys.exit(main())

"""Format single values as text: intervals, rates, sizes, columns and unknown names. Pure functions."""

import difflib
import hashlib
import re
import textwrap
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from stele.statistics import Estimate

MIB = 2**20
UNCHANGED = 0.05  # per cent
SLUG = 100  # letters in a slug; two of them and a date make a file name
# names that people use for others, and that are not similar to them
MEANT = {"gpu": "cuda", "tf": "tensorflow", "mxnet": "mxnet-gluon", "pytorch": "torch"}
LABEL = 13  # columns of a label
NARROWEST = 20  # columns of what stands beside it
FACTOR = 2.0  # a growth by so much, or more, is said as a factor
# user and password of a URL; the second pattern is of a password with a slash that should have been encoded
CREDENTIALS = re.compile(r"://([^\s/?#]*)@")
BROKEN_CREDENTIALS = re.compile(r"://([^\s/:@\[]*):(?!\d*([/?#\s]|$))[^\s@]*@")
# a parameter of a URL, and the last words of names whose value lets in whoever knows it, as in &X-Amz-Signature=...
PARAMETER = re.compile(r"([?&])([\w.-]+)=([^\s&#'\"]+)")
SECRETS = ("token", "password", "passwd", "pwd", "key", "sig", "signature", "secret", "credential", "auth")


def milliseconds(seconds: float) -> str:
    """Return a duration, given in seconds, in milliseconds."""
    return figure(seconds * 1e3)


def interval(estimate: Estimate, format_value: Callable[[float], str] = milliseconds) -> str:
    """Return "[low middle high]"; the default ``format_value`` shows seconds as milliseconds."""
    return "[" + " ".join("?" if value is None else format_value(value) for value in estimate) + "]"


def figure(value: float) -> str:
    """Return a number with three significant digits, never with an exponent."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


class Words(NamedTuple):
    """How a change of something is said."""

    more: str
    less: str
    times: str  # after "3.2 times"


DURATION = Words("slower", "faster", "as long")
SIZE = Words("more", "less", "as large")
COUNT = Words("more", "less", "as many")
LOWER = Words("higher", "lower", "as high")  # of a number of which less is better
HIGHER = Words("lower", "higher", "as low")  # of its reciprocal, if more is better


def change(ratio: float, words: Words = DURATION) -> str:
    """``5.2 % slower``, or ``296 times as long``"""
    if ratio >= FACTOR:
        return f"{ratio:,.0f} times {words.times}" if ratio >= 100 else f"{ratio:.1f} times {words.times}"
    percent = 100 * (ratio - 1)
    if abs(percent) < UNCHANGED:
        return "the same"
    return f"{abs(percent):.1f} % {words.more if percent > 0 else words.less}"


def versions(numbers: dict[str, str | None]) -> str:
    """Return "name version" of the framework and then of its backend."""
    return printable(", ".join(f"{name} {number}" for name, number in numbers.items() if number), keep="")


def sentence(text: object) -> str:
    """Return text that ends with one full stop; of several lines without one, because the last is part of a list."""
    ended = str(text).rstrip()
    return ended if "\n" in ended or ended.endswith((".", "!", "?", ":")) else f"{ended}."


def printable(text: str, *, keep: str = "\n\t") -> str:
    """Return text with "?" for each character that controls a terminal or hides text, except those in ``keep``."""
    if text.isprintable():  # almost always, and much faster
        return text
    return "".join(letter if letter in keep or not is_control(letter) else "?" for letter in text)


def without_passwords(text: str) -> str:
    """Return text with *** for the secrets in each URL: the password, the values of parameters such as ``token``.

    A user without a password may be a token, too.
    """

    def hidden(match: re.Match[str]) -> str:
        user, colon, _ = match[1].partition(":")
        if not colon and not text.endswith("ssh", 0, match.start()):
            user = "***"
        return f"://{user}{colon and ':***'}@"

    if "://" not in text:
        return text
    shown = BROKEN_CREDENTIALS.sub(r"://\1:***@", CREDENTIALS.sub(hidden, text))
    return PARAMETER.sub(without_secret, shown)


def without_secret(match: re.Match[str]) -> str:
    """Return a parameter of a URL with *** for a secret value."""
    sign, name, _ = match.groups()
    return f"{sign}{name}=***" if name.lower().endswith(SECRETS) else match[0]


def is_control(letter: str) -> bool:
    """Return whether a character controls a terminal, is invisible, or is half of a surrogate pair.

    Python represents a byte of a name that the locale cannot decode as a surrogate, too. Such a byte is kept.
    """
    if "\udc80" <= letter <= "\udcff":
        return False
    return unicodedata.category(letter) in ("Cc", "Cf", "Cs")


def printable_values(value: Any, *, keep: str = "\n\t") -> Any:
    """Return JSON with ``printable`` texts, keys included. All text from outside passes through it."""
    if isinstance(value, str):
        return printable(value, keep=keep)
    if isinstance(value, list):
        return [printable_values(item, keep=keep) for item in value]
    if isinstance(value, dict):
        return {printable(key, keep=keep): printable_values(item, keep=keep) for key, item in value.items()}
    return value


def counted(number: int, thing: str) -> str:
    """Return ``1 launch`` or ``2 launches``."""
    plural = f"{thing}es" if thing.endswith(("ch", "s")) else f"{thing}s"
    return f"{number} {thing if number == 1 else plural}"


def first_of(names: Sequence[str], most: int) -> str:
    """Return ``a, b and 3 more``: the first names, and how many there are beyond ``most``."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def period(days: Sequence[str]) -> str:
    """Return the first and the last of these days, which are in order; one day once."""
    return " to ".join(dict.fromkeys((days[0], days[-1])))


def or_none(value: Any) -> str:
    return "none" if value is None else str(value)


def mebibytes(size: int | None) -> str:
    """Return a size, given in bytes, in MiB; empty if it is unknown."""
    return "" if size is None else f"{size / MIB:,.0f} MiB"


def align(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows of cells as lines, each column as wide as its widest cell."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def labelled(label: str, value: str, columns: int, *, width: int = LABEL) -> list[str]:
    """Return ``  label          value`` as lines. ``columns`` is the width of both."""
    first = f"  {label:<{width}}  "
    if len(label) > width:
        return [f"  {label}", *(labelled("", value, columns, width=width) if value else ())]
    lines = [
        line
        for paragraph in value.splitlines() or [""]
        for line in textwrap.wrap(
            paragraph, max(columns - len(first), NARROWEST), break_long_words=False, break_on_hyphens=False
        )
        or [""]
    ]
    return [f"{' ' * len(first) if number else first}{line}".rstrip() for number, line in enumerate(lines)]


def unknown_message(kind: str, value: str, names: Iterable[str], *, of: str = "", command: str = "") -> str:
    """Return the error message for a ``value`` that is not one of ``names``.

    ``of`` says of what it is, such as "for task gru". ``command`` lists the names, if they are many.
    """
    names = list(names)
    similar = [name for name in [MEANT.get(value.lower())] if name in names] or difflib.get_close_matches(
        value.lower(), names, n=1
    )
    hints = [f"Did you mean {similar[0]!r}?"] if similar else [f"Known: {', '.join(names)}."] * (not command)
    hints += [f"List all with: {command}"] * bool(command)
    return " ".join([f"Unknown {kind} {value!r}{of and f' {of}'}.", *hints])


def slug(name: str) -> str:
    """Return a name as a part of a file name: every character that is unsafe there becomes "_".

    The end of a long name becomes a hash, because the operating system limits the length of a file name.
    """
    safe = re.sub(r"[^A-Za-z0-9_.=-]", "_", name)
    if len(safe) <= SLUG:
        return safe
    return f"{safe[: SLUG - 9]}-{hashlib.sha256(name.encode(errors='replace')).hexdigest()[:8]}"

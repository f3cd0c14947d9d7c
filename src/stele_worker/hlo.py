"""What the operations in a program of XLA consist of, and which line of the user's code they come from.

The program is text in HLO, as ``compiled.as_text()`` of JAX returns it. XLA compiles a call, which may be a whole loop,
into one function, and a profiler shows one event for it.
"""

import os
import re
import sysconfig

from stele_worker import FOLDERS

COMPUTATION = re.compile(r"^(?:ENTRY )?%?([\w.-]+) \(.*\{$")
INSTRUCTION = re.compile(r"^ +(?:ROOT )?%?([\w.-]+) = (.*?[\])}]) ([a-z][a-z0-9-]*)\(")  # name, shape, kind
CALLED = re.compile(r"\b(?:to_apply|body|true_computation|false_computation)=%?([\w.-]+)")
BRANCHES = re.compile(r"\bbranch_computations=\{([^}]*)\}")
SHAPE = re.compile(r"\[([\d,]*)\]")
LINE = re.compile(r'\bsource_file="([^"]*)" source_line=(\d+)')
FRAME = re.compile(r"\bstack_frame_id=(\d+)")  # newer programs have tables of files, places and frames
TABLES = {
    "FileNames": re.compile(r'^(\d+) "(.*)"$'),
    "FileLocations": re.compile(r"^(\d+) \{file_name_id=(\d+) .*?\bline=(\d+)"),
    "StackFrames": re.compile(r"^(\d+) \{file_location_id=(\d+)"),
}
CALLS = ("call", "while", "conditional")  # their operations run one by one; those of a fusion do not
NO_WORK = ("parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all")
SHOWN = 3  # operations of a call that its label names
SMALL = 0.1  # of the largest result of a call; operations with smaller results are not named


class Program:
    """The instructions of each computation: {computation: {name: (kind, size, rest of the line)}}."""

    def __init__(self, text):
        self.name, self.computations, current = "", {}, {}
        self.tables, heading = {name: {} for name in TABLES}, ""
        for line in text.splitlines():
            instruction, computation = INSTRUCTION.match(line), COMPUTATION.match(line)
            row = TABLES[heading].match(line) if heading in TABLES else None
            if instruction:
                name, shape, kind = instruction.groups()
                current[name] = kind, numbers_in(shape), line[instruction.end() :]
            elif computation:
                current = self.computations[computation.group(1)] = {}
            elif row:
                self.tables[heading][row.group(1)] = row.groups()[1:]
            elif line.startswith("HloModule "):
                self.name = line.split()[1].rstrip(",")
            elif line:
                heading = line

    def labels(self):
        """Return {operation: label} of all operations that a profiler may show."""
        return {
            name: self.label(name, kind, rest)
            for computation in self.computations.values()
            for name, (kind, _, rest) in computation.items()
            if kind not in NO_WORK
        }

    def label(self, name, kind, rest):
        """Return ``call at net.py:14: while of dynamic-update-slice``: the name, the line, what a call consists of."""
        place, content = self.place(rest), self.content(rest) if kind == "call" else ""
        return plain(name) + (" at " + place if place else "") + (": " + content if content else "")

    def content(self, rest):
        """Return the operations of a call with the largest results."""
        sizes, inner = {}, self.operations(rest)
        for kind, name, size in inner:
            if kind not in CALLS:
                sizes[plain(name)] = max(size, sizes.get(plain(name), 0))
        large = [name for name, size in sizes.items() if size >= SMALL * max(sizes.values())]
        names = ", ".join(sorted(large, key=lambda name: (-sizes[name], name))[:SHOWN])
        return "while of " + names if any(kind == "while" for kind, _, _ in inner) else names

    def operations(self, rest, above=()):
        """Return (kind, name, size) of the operations that a call, a loop or a conditional executes."""
        names = CALLED.findall(rest)
        for branches in BRANCHES.findall(rest):
            names += re.findall(r"[\w.-]+", branches)
        result = []
        for computation in names:
            for name, (kind, size, inner) in self.computations.get(computation, {}).items():
                if kind not in NO_WORK:
                    result.append((kind, name, size))
                if kind in CALLS and computation not in above:
                    result += self.operations(inner, above + (computation,))
        return result

    def place(self, rest):
        """Return ``net.py:14``, or None if the line is not in the user's code."""
        line, frame = LINE.search(rest), FRAME.search(rest)
        if line:
            path, number = line.groups()
        elif frame and frame.group(1) in self.tables["StackFrames"]:
            [place] = self.tables["StackFrames"][frame.group(1)]
            file, number = self.tables["FileLocations"].get(place, ("", ""))
            [path] = self.tables["FileNames"].get(file, [""])
        else:
            return None
        return "{}:{}".format(os.path.basename(path), number) if is_users(path) else None


def labels(texts):
    """Return {(program, operation): label}. Where two programs of one name differ, the label is the plain name."""
    result = {}
    for text in texts:
        program = Program(text)
        for name, label in program.labels().items():
            key = program.name, name
            result[key] = label if result.get(key, label) == label else plain(name)
    return result


def plain(name):
    """Return the name of an operation without its number."""
    return re.sub(r"[.\d]+$", "", name)


def numbers_in(shape):
    """Return how many numbers an array of this shape has, or all arrays of a tuple."""
    total = 0
    for sizes in SHAPE.findall(shape):
        count = 1
        for size in sizes.split(","):
            count *= int(size or 1)
        total += count
    return total


def is_users(path):
    """Return whether a file is neither of Python, nor of an installed package, nor of Stele."""
    folders = list(FOLDERS) + [sysconfig.get_paths()[name] for name in ("stdlib", "purelib", "platlib")]
    outside = not any(os.path.realpath(path).startswith(os.path.realpath(folder)) for folder in folders)
    return bool(path) and outside and not re.search(r"/(site|dist)-packages/|^<", path)

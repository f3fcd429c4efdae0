"""Reads JSON files with the reader of Python and prints each as one line: {"value": VALUE} or {"error": TEXT}.

A name that stands twice in an object, NaN and Infinity are errors: other readers disagree about them.
"""

import json
import sys


def once(pairs):
    names = [name for name, _ in pairs]
    if len(set(names)) != len(names):
        raise ValueError("a name stands twice")
    return dict(pairs)


def refuse(name):
    raise ValueError("not JSON: " + name)


for path in sys.argv[1:]:
    try:
        with open(path, "rb") as file:
            value = json.loads(file.read(), object_pairs_hook=once, parse_constant=refuse)
            line = {"value": value}
    except Exception as error:
        line = {"error": type(error).__name__ + ": " + str(error)}
    print(json.dumps(line))

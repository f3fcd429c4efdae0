"""Reads property lists, XML or binary, with the reader of Python, and prints one line of JSON for each file.

A line is {"value": VALUE} or {"error": TEXT}. Every VALUE names its type, so that 1 and true, or a text and a date, are
never the same: ["boolean", true], ["integer", "19"], ["real", "0.5"], ["string", "a"], ["data", "base64"],
["date", "2024-01-01T00:00:00"], ["array", [VALUE, ...]], ["dict", [["key", VALUE], ...]].
"""

import base64
import datetime
import json
import plistlib
import sys


def typed(value):
    if isinstance(value, bool):
        return ["boolean", value]
    if isinstance(value, int):
        return ["integer", str(value)]
    if isinstance(value, float):
        return ["real", repr(value)]
    if isinstance(value, str):
        return ["string", value]
    if isinstance(value, bytes):
        return ["data", base64.b64encode(value).decode("ascii")]
    if isinstance(value, datetime.datetime):
        return ["date", value.isoformat()]
    if isinstance(value, list):
        return ["array", [typed(entry) for entry in value]]
    if isinstance(value, dict):
        return ["dict", [[key, typed(entry)] for key, entry in value.items()]]
    raise TypeError("no type of a property list: " + type(value).__name__)


for path in sys.argv[1:]:
    try:
        with open(path, "rb") as file:
            line = {"value": typed(plistlib.load(file))}
    except Exception as error:
        line = {"error": type(error).__name__ + ": " + str(error)}
    print(json.dumps(line))

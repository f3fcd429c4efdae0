"""Reads XML files with the reader of Python and prints each as one line of JSON: {"value": ELEMENT} or {"error": TEXT}.

An ELEMENT is {"tag": NAME, "attributes": {...}, "text": TEXT, "children": [ELEMENT, ...]}; names carry no namespace.
"""

import json
import sys
import xml.etree.ElementTree as tree


def plain(name):
    return name.rsplit("}", 1)[-1]


def element(node):
    return {
        "tag": plain(node.tag),
        "attributes": {plain(name): value for name, value in node.attrib.items()},
        "text": node.text or "",
        "children": [element(child) for child in node],
    }


for path in sys.argv[1:]:
    try:
        line = {"value": element(tree.parse(path).getroot())}
    except Exception as error:
        line = {"error": type(error).__name__ + ": " + str(error)}
    print(json.dumps(line))

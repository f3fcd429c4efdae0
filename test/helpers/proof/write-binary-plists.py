"""Reads property lists and writes each as a binary one beside it, with the writer of Python: FILE.bin."""

import plistlib
import sys

for path in sys.argv[1:]:
    with open(path, "rb") as file:
        value = plistlib.load(file)
    with open(path + ".bin", "wb") as file:
        plistlib.dump(value, file, fmt=plistlib.FMT_BINARY)

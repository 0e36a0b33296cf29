# SPDX-License-Identifier: Apache-2.0
"""Writes the files that options.mlir reads: arrays.py FOLDER."""

import sys

import numpy as np

folder = sys.argv[1]
x = np.random.default_rng(0).standard_normal(1024).astype(np.float32)
np.save(f"{folder}/x.npy", x)
np.save(f"{folder}/y.npy", np.zeros_like(x))
np.save(f"{folder}/half.npy", x.astype(np.float16))
np.save(f"{folder}/double.npy", x.astype(np.float64))
np.save(f"{folder}/short.npy", x[:100])
with open(f"{folder}/x.npy", "rb") as file:
    data = file.read()
with open(f"{folder}/cut.npy", "wb") as file:
    file.write(data[:-10])
with open(f"{folder}/text.npy", "w") as file:
    file.write("1 2 3\n")
for name, old, new in [
    ("maybe", "False", "Maybe"),
    ("again", "}", "'shape': (4, 256), }"),
]:
    with open(f"{folder}/{name}.npy", "wb") as file:
        header = data[10:128].decode().rstrip()
        assert old in header
        file.write(data[:10] + header.replace(old, new).ljust(117).encode() + b"\n")
        file.write(data[128:])

# SPDX-License-Identifier: Apache-2.0
"""Try an installed torch_spyre: usage try_installed.py <its environment> [<library>].

Imports only torch, as a user does; the entry point must do the rest. The library is
loaded first, for all of the process to see its symbols.
"""

import ctypes
import subprocess
import sys
from pathlib import Path

if len(sys.argv) > 2:
    ctypes.CDLL(sys.argv[2], ctypes.RTLD_GLOBAL)

import torch

environment = Path(sys.argv[1]).resolve()
package = Path(sys.modules["torch_spyre"].__file__).resolve()
if environment not in package.parents:
    sys.exit(f"torch_spyre comes from {package}, not from {environment}")

x = torch.randn(5, 100, 150, dtype=torch.float16)
there = x.to("spyre")
back = there.cpu()
# DL16 keeps 9 fraction bits: half a unit in the last place is 2^-10.
torch.testing.assert_close(back, x, rtol=2**-10, atol=2**-24)


def f(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.relu(a @ b) + 1


a = torch.randn(64, 96, dtype=torch.float16)
b = torch.randn(96, 130, dtype=torch.float16)
result = torch.compile(f, backend="spyre")(a.to("spyre"), b.to("spyre")).cpu()
# Inputs, product, sum and result round once each.
torch.testing.assert_close(
    result.float(), f(a.float(), b.float()), rtol=2**-7, atol=96**0.5 * 2**-7
)
softmax = torch.compile(lambda t: torch.softmax(t, -1), backend="spyre")
result = softmax(there).cpu()
torch.testing.assert_close(
    result.float(), torch.softmax(back.float(), -1), rtol=2**-7, atol=2**-10
)

for tool in ("spyre-lx-plan", "spyre-opt", "spyre-run", "spyre-translate"):
    printed = subprocess.run(
        [environment / "bin" / tool, "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    if f"USAGE: {tool}" not in printed.stdout:
        sys.exit(f"{tool} --help prints no usage: {printed.stdout[:200]}")
    print(f"{tool} --help works")
print(f"torch_spyre in {package.parent} works")

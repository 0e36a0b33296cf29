# SPDX-License-Identifier: Apache-2.0
"""Try an installed torch_spyre: usage try_installed.py <its environment>.

Imports only torch, as a user does; the entry point must do the rest.
"""

import sys
from pathlib import Path

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
print(f"torch_spyre in {package.parent} works")

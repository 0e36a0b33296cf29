# SPDX-License-Identifier: Apache-2.0
"""Imported by tests that compare plans of one function bit by bit.

The instruction set ``amx`` sums products of 8 rows or more in another order than
those of fewer (docs/internals/runtime.md), so that bits depend on how a plan divides
rows. These tests, and all that run in the same process, take AVX-512 instead, unless
``SPYRE_CPU_CAPABILITY`` says otherwise.
"""

import os
from pathlib import Path

CPU_INFO = Path("/proc/cpuinfo")

if CPU_INFO.exists() and " amx_bf16 " in CPU_INFO.read_text():
    os.environ.setdefault("SPYRE_CPU_CAPABILITY", "avx512")

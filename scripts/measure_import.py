# SPDX-License-Identifier: Apache-2.0
"""Measure what torch_spyre adds to `import torch`.

usage: python measure_import.py [<most milliseconds>], with the Python of the
environment that is measured. Exits with 1 if it is more. Times are those of the
processor, and the least of several runs: other work on the same cores makes runs
longer, none shorter. If it is more, they are measured again, twice at most.
"""

import os
import subprocess
import sys

RUNS = 10
ROUNDS = 3


def seconds(autoload: str) -> float:
    """Import torch in a process of its own; return the processor's time for it."""
    program = (
        "import time; start = time.process_time(); import torch; "
        "print(time.process_time() - start)"
    )
    result = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": autoload},
        capture_output=True,
        text=True,
        check=True,
    )
    return float(result.stdout)


def main() -> None:
    """Print the least times of several runs, in turn, and their difference."""
    most = float(sys.argv[1]) if len(sys.argv) > 1 else None
    alone, both = [], []
    for _ in range(ROUNDS if most is not None else 1):
        for _ in range(RUNS):
            alone.append(seconds("0"))
            both.append(seconds("1"))
        added = (min(both) - min(alone)) * 1000
        print(
            f"import torch: {min(alone) * 1000:.0f} ms alone, "
            f"{min(both) * 1000:.0f} ms with the device: {added:.0f} ms more "
            f"(least of {len(both)} runs each)",
            flush=True,
        )
        if most is None or added <= most:
            return
    sys.exit(f"measure_import: expected at most {most:.0f} ms more")


if __name__ == "__main__":
    main()

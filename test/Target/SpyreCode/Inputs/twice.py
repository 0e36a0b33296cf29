# SPDX-License-Identifier: Apache-2.0
"""Make a job of one program run a copy of it, too.

Usage: twice.py FOLDER OUTPUT
"""

import copy
import json
import shutil
import sys
from pathlib import Path


def main():
    source, target = map(Path, sys.argv[1:])
    shutil.copytree(source, target)
    path = target / "spyrecode.json"
    job = json.loads(path.read_text())
    allocate, transfer = (
        command["properties"] for command in job["JobPreparationPlan"]
    )
    size = int(allocate["size"])
    start = str(int(transfer["dev_ptr"]) + size)
    second = copy.deepcopy(job["JobPreparationPlan"][1])
    second["properties"]["dev_ptr"] = start
    job["JobPreparationPlan"].append(second)
    job["JobExecPlan"].append(
        {"command": "ComputeOnDevice", "properties": {"job_bin_ptr": start}}
    )
    allocate["size"] = str(2 * size)
    path.write_text(json.dumps(job))


if __name__ == "__main__":
    main()

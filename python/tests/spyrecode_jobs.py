# SPDX-License-Identifier: Apache-2.0
"""Ways to change a job of SpyreCode, and its image."""

import hashlib
import json
import shutil

#: Where the first image lies.
BASE = 0x1C00000000


def changed(base, folder, change):
    """A copy of the job of folder `base` after `change(job)`."""
    shutil.copytree(base, folder)
    path = folder / "spyrecode.json"
    code = json.loads(path.read_text())
    change(code)
    path.write_text(json.dumps(code, indent=2))
    return folder


def put(plan, step, key, value):
    """Sets a property; None removes it; a function is given the one before."""

    def change(code):
        properties = code[plan][step]["properties"]
        if value is None:
            del properties[key]
        elif callable(value):
            properties[key] = value(properties[key])
        else:
            properties[key] = value

    return change


def prepare(step, key, value):
    return put("JobPreparationPlan", step, key, value)


def run_step(step, key, value):
    return put("JobExecPlan", step, key, value)


def insert(plan, place, command, **properties):
    entry = {"command": command, "properties": properties}
    return lambda code: code[plan].insert(place, entry)


def remove(plan, place):
    return lambda code: code[plan].pop(place)


def hcm(change):
    return lambda code: change(code["JobExecPlan"][0]["properties"]["hcm"])


def mix(code):
    properties = code["JobExecPlan"][1]["properties"]
    properties["direction"] = 0
    del properties["dirn"]


def overlap(code):
    code["JobPreparationPlan"].append(code["JobPreparationPlan"][1])


def transfer_late(code):
    code["JobExecPlan"].append(code["JobExecPlan"][1])


def claim(code):
    code["JobPreparationPlan"][0]["properties"]["size"] = str(16 << 30)
    transfer = {"dirn": "true", "host_handle": "h", "size": str(8 << 30)}
    transfer["dev_ptr"] = str(BASE + (1 << 30))
    code["JobExecPlan"].append({"command": "DataTransfer", "properties": transfer})


def image_size(code):
    return int(code["JobPreparationPlan"][1]["properties"]["size"])


def tighten(code):
    """No room behind the image."""
    code["JobPreparationPlan"][0]["properties"]["size"] = str(image_size(code))


def more_steps(code):
    """The image a second time, and its first bytes to the host and back."""
    size = image_size(code)
    end = (size + 127) // 128 * 128
    code["JobPreparationPlan"][0]["properties"]["size"] = str(2 * end + 128)
    again = {"init_bin_file": "program.bin", "size": str(size)}
    again["dev_ptr"] = str(BASE + end)
    code["JobPreparationPlan"].append({"command": "InitTransfer", "properties": again})
    down = {"dirn": "true", "host_handle": "head", "size": "128"}
    up = {"dirn": "false", "host_handle": "row", "size": "128"}
    host = {"ihandle": "head", "ishape": ["16"], "ohandle": "row", "size": "128"}
    row = {"row": 0, "from": "input", "index": 0, "divisor": 2}
    host["hcm"] = {"vdci": [row], "senConstants": {}}
    code["JobExecPlan"] += [
        {"command": "DataTransfer", "properties": {**down, "dev_ptr": str(BASE)}},
        {"command": "ComputeOnHost", "properties": host},
        {
            "command": "DataTransfer",
            "properties": {**up, "dev_ptr": str(BASE + 2 * end)},
        },
        {"command": "ComputeOnDevice", "properties": {"job_bin_ptr": str(BASE + end)}},
    ]


def far_values(code):
    more_steps(code)
    code["JobExecPlan"][2]["properties"]["ishape"] = ["17"]


def correct_two(code):
    """Two images whose correction tensors overlap."""
    size = image_size(code)
    code["JobPreparationPlan"][0]["properties"]["size"] = str(1 << 20)
    again = dict(code["JobPreparationPlan"][1]["properties"])
    # The second image's tensor starts where the first image's ends.
    again["dev_ptr"] = str(BASE + size + 512)
    code["JobPreparationPlan"].append({"command": "InitTransfer", "properties": again})
    compute = {"job_bin_ptr": again["dev_ptr"]}
    code["JobExecPlan"].append({"command": "ComputeOnDevice", "properties": compute})


def seal(image):
    """The image with the right checksum."""
    blank = image[:64] + bytes(32) + image[96:]
    return blank[:64] + hashlib.sha256(blank).digest() + blank[96:]


def patched(base, folder, offset, data, sealed=True):
    """A copy of `base` with other bytes in its image."""
    shutil.copytree(base, folder)
    image = bytearray((folder / "program.bin").read_bytes())
    data = data(image) if callable(data) else data
    image[offset : offset + len(data)] = data
    image = seal(bytes(image)) if sealed else bytes(image)
    (folder / "program.bin").write_bytes(image)
    return folder

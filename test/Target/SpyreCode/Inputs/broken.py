# SPDX-License-Identifier: Apache-2.0
"""One folder of SpyreCode per rule that it breaks, and hostile ones.

Usage: broken.py OUTPUT PLANNED POOLED

PLANNED has three array arguments, POOLED a pool.
"""

import copy
import hashlib
import json
import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path

BASE = 0x1C00000000
ROOT = Path(sys.argv[1])


def translate(planned, name, *flags):
    folder = ROOT / name
    command = ["spyre-translate", "--to-spyrecode", *flags, planned, "-o", folder]
    subprocess.run([str(part) for part in command], check=True, timeout=300)
    return json.loads((folder / "spyrecode.json").read_text())


def seal(image):
    """The image with the right checksum."""
    blank = image[:64] + bytes(32) + image[96:]
    return blank[:64] + hashlib.sha256(blank).digest() + blank[96:]


def save(name, code, base, image=None):
    folder = ROOT / name
    shutil.copytree(ROOT / base, folder)
    text = code if isinstance(code, str) else json.dumps(code, indent=2)
    (folder / "spyrecode.json").write_text(text)
    if image is not None:
        (folder / "program.bin").write_bytes(image)
    return folder


def edit(name, base, change):
    """A copy of the job of folder `base` after `change(job)`."""
    code = copy.deepcopy(CODES[base])
    change(code)
    return save(name, code, base)


def put(plan, step, key, value):
    """Sets a property; None removes it."""

    def change(code):
        properties = code[plan][step]["properties"]
        if value is None:
            del properties[key]
        else:
            properties[key] = value

    return change


def prepare(step, key, value):
    return put("JobPreparationPlan", step, key, value)


def execute(step, key, value):
    return put("JobExecPlan", step, key, value)


def patch(name, base, offset, data, sealed=True):
    """A copy of `base` with other bytes in its image."""
    image = bytearray((ROOT / base / "program.bin").read_bytes())
    image[offset : offset + len(data)] = data
    image = seal(bytes(image)) if sealed else bytes(image)
    return save(name, CODES[base], base, image)


def insert(plan, place, command, **properties):
    entry = {"command": command, "properties": properties}
    return lambda code: code[plan].insert(place, entry)


def remove(plan, place):
    return lambda code: code[plan].pop(place)


CODES = {
    "bound": translate(sys.argv[2], "bound"),
    "symbolic": translate(sys.argv[2], "symbolic", "--symbolic-args"),
    "spec": translate(
        sys.argv[2], "spec", "--symbolic-args", "--spyrecode-flavor=spec"
    ),
    "pooled": translate(sys.argv[3], "pooled"),
}
SIZE = (ROOT / "bound" / "program.bin").stat().st_size
TEXT = json.dumps(CODES["bound"], indent=2)

# Files.
edit("missing", "bound", prepare(1, "init_bin_file", "other.bin"))
edit("outside", "bound", prepare(1, "init_bin_file", "../bound/program.bin"))
edit("absolute", "bound", prepare(1, "init_bin_file", "/etc/passwd"))
edit("linked", "bound", prepare(1, "init_bin_file", "own.bin"))
os.symlink("../bound/program.bin", ROOT / "linked" / "own.bin")
(ROOT / "empty").mkdir()
with open(save("huge", TEXT, "bound") / "program.bin", "wb") as file:
    file.truncate(1 << 40)
save("truncated", TEXT[: len(TEXT) // 2], "bound")
save("deep", "[" * 100000, "bound")
save("twice", TEXT.replace('"size"', '"size": "128", "size"', 1), "bound")
save("overflow", TEXT.replace(f'"{SIZE}"', "1" * 30), "bound")
save("fraction", TEXT.replace(f'"{SIZE}"', "12.5"), "bound")
save("array", "[]", "bound")
save("surprise", {**CODES["bound"], "Other": []}, "bound")

# Form.
save("no_exec", {"JobPreparationPlan": CODES["bound"]["JobPreparationPlan"]}, "bound")
edit("unknown", "bound", insert("JobExecPlan", 0, "Halt"))
for base, plan, step in (
    ("bound", "JobPreparationPlan", 0),
    ("bound", "JobPreparationPlan", 1),
    ("symbolic", "JobExecPlan", 0),
    ("symbolic", "JobExecPlan", 1),
    ("symbolic", "JobExecPlan", 2),
):
    for key in CODES[base][plan][step]["properties"]:
        edit(f"without_{plan}_{step}_{key}", base, put(plan, step, key, None))
edit("no_direction", "symbolic", execute(1, "dirn", "sideways"))
edit("extra", "bound", prepare(0, "colour", "red"))
edit("negative", "bound", prepare(0, "size", -128))
edit("negative_text", "bound", prepare(0, "size", "-128"))
edit("too_large", "bound", prepare(0, "size", "9223372036854775808"))
edit("hexadecimal", "bound", prepare(1, "dev_ptr", hex(BASE)))


def mix(code):
    properties = code["JobExecPlan"][1]["properties"]
    properties["direction"] = 0
    del properties["dirn"]


edit("mixed", "symbolic", mix)

# Preparation.
edit("one", "bound", remove("JobPreparationPlan", 1))
edit("swapped", "bound", lambda code: code["JobPreparationPlan"].reverse())
edit("odd_size", "bound", prepare(0, "size", "100"))
edit("giant", "bound", prepare(0, "size", str((16 << 30) + 128)))
edit("beyond", "bound", prepare(1, "dev_ptr", str(BASE + 128)))
second = CODES["bound"]["JobPreparationPlan"][1]["properties"]
edit("overlap", "bound", insert("JobPreparationPlan", 2, "InitTransfer", **second))
edit("short", "bound", prepare(1, "size", str(SIZE - 128)))
edit("low", "bound", prepare(1, "dev_ptr", "128"))
edit("odd_address", "bound", prepare(1, "dev_ptr", str(BASE + 90)))

# Execution.
edit("nothing", "bound", remove("JobExecPlan", 0))
edit("allocate_late", "bound", insert("JobExecPlan", 0, "Allocate", size="128"))
edit("no_image", "symbolic", execute(2, "job_bin_ptr", str(BASE + 128)))
edit("undefined", "symbolic", execute(1, "host_handle", "nobody"))
edit("self", "symbolic", execute(0, "ihandle", "correction"))
edit("reserved", "symbolic", execute(0, "ohandle", "iargs"))
edit("part", "symbolic", execute(1, "size", "128"))
edit("over_image", "symbolic", execute(1, "dev_ptr", str(BASE)))
edit("order", "symbolic", lambda code: code["JobExecPlan"].reverse())
first = CODES["symbolic"]["JobExecPlan"]
edit("late_transfer", "symbolic", lambda code: code["JobExecPlan"].append(first[1]))
edit("shape", "symbolic", execute(0, "ishape", ["3", "1"]))
edit("fewer", "symbolic", execute(0, "ishape", ["4"]))
edit("output", "symbolic", execute(0, "size", "256"))


def claim(code):
    code["JobPreparationPlan"][0]["properties"]["size"] = str(16 << 30)
    transfer = {"dirn": "true", "host_handle": "h", "size": str(8 << 30)}
    transfer["dev_ptr"] = str(BASE + (1 << 30))
    code["JobExecPlan"].append({"command": "DataTransfer", "properties": transfer})


edit("claimed", "bound", claim)


def claim_often(code):
    claim(code)
    code["JobExecPlan"][1]["properties"]["size"] = str(6 << 20)
    for number in range(2):
        again = copy.deepcopy(code["JobExecPlan"][1])
        again["properties"]["host_handle"] = f"h{number}"
        code["JobExecPlan"].append(again)
    # A handle that was refused is still one that others may name.
    used = copy.deepcopy(again)
    used["properties"]["dirn"] = "false"
    code["JobExecPlan"].append(used)


edit("many", "bound", claim_often)


def both(code):
    """Two images with other arguments."""
    pooled = ROOT / "pooled" / "program.bin"
    shutil.copy(pooled, ROOT / "two_images" / "second.bin")
    size, start = pooled.stat().st_size, 1 << 16
    code["JobPreparationPlan"][0]["properties"]["size"] = str(1 << 20)
    code["JobPreparationPlan"].append(
        {
            "command": "InitTransfer",
            "properties": {
                "init_bin_file": "second.bin",
                "size": str(size),
                "dev_ptr": str(BASE + start),
            },
        }
    )
    code["JobExecPlan"].append(
        {
            "command": "ComputeOnDevice",
            "properties": {"job_bin_ptr": str(BASE + start)},
        }
    )


save("two_images", TEXT, "bound")
CODE = copy.deepcopy(CODES["bound"])
both(CODE)
(ROOT / "two_images" / "spyrecode.json").write_text(json.dumps(CODE))


def hcm(change):
    def apply(code):
        change(code["JobExecPlan"][0]["properties"]["hcm"])

    return apply


edit("no_constants", "symbolic", hcm(lambda hcm: hcm.pop("senConstants")))
edit("far_input", "symbolic", hcm(lambda hcm: hcm["vdci"][0].update(index=7)))
edit("zero_divisor", "symbolic", hcm(lambda hcm: hcm["vdci"][0].update(divisor=0)))
edit("row_twice", "symbolic", hcm(lambda hcm: hcm["vdci"][1].update(row=1)))
edit("row_gap", "symbolic", hcm(lambda hcm: hcm["vdci"][2].update(row=9)))
edit("wrong_rows", "symbolic", hcm(lambda hcm: hcm["vdci"][0].update(index=1)))
edit("wrong_tag", "symbolic", hcm(lambda hcm: hcm["senConstants"].update({"0": 1})))
edit("uncorrected", "symbolic", lambda code: code["JobExecPlan"].__delitem__(slice(2)))

# Images.
patch("magic", "bound", 0, b"X")
patch("version", "bound", 8, struct.pack("<I", 2))
patch("said_size", "bound", 16, struct.pack("<Q", 1 << 60))
patch("payload", "bound", 24, struct.pack("<Q", (1 << 64) - 1))
patch("payload_offset", "bound", 12, struct.pack("<I", 0xFFFFFFFF))
patch("pool_offset", "bound", 48, struct.pack("<QQ", 128, 1 << 60))
patch("rank", "bound", 128, struct.pack("<I", 0xFFFFFFFF))
patch("group", "bound", 132, struct.pack("<i", -7))
patch("arguments", "bound", 44, struct.pack("<I", 0xFFFFFFFF))
patch("damaged", "bound", 300, b"\xff", sealed=False)
patch("nonsense", "bound", 256, bytes(64))
patch("wrong_count", "bound", 44, struct.pack("<I", 2))
patch("rows", "symbolic", 40, struct.pack("<I", 9))
patch("no_room", "bound", 48, struct.pack("<QQ", SIZE, 128))
size = (ROOT / "pooled" / "program.bin").stat().st_size
edit("tight", "pooled", prepare(0, "size", str(size)))


def more_steps(code):
    """The image a second time, and its first bytes to the host and back."""
    end = (SIZE + 127) // 128 * 128
    code["JobPreparationPlan"][0]["properties"]["size"] = str(2 * end + 128)
    again = {"init_bin_file": "program.bin", "size": str(SIZE)}
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


edit("more_steps", "bound", more_steps)
edit("far_values", "bound", far_values)


def two_corrected(code):
    """Two images whose correction tensors overlap."""
    size = (ROOT / "symbolic" / "program.bin").stat().st_size
    code["JobPreparationPlan"][0]["properties"]["size"] = str(1 << 20)
    again = dict(code["JobPreparationPlan"][1]["properties"])
    # The second image's tensor starts where the first image's ends.
    again["dev_ptr"] = str(BASE + size + 512)
    code["JobPreparationPlan"].append({"command": "InitTransfer", "properties": again})
    compute = {"job_bin_ptr": again["dev_ptr"]}
    code["JobExecPlan"].append({"command": "ComputeOnDevice", "properties": compute})


edit("two_corrected", "symbolic", two_corrected)

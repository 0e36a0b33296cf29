# SPDX-License-Identifier: Apache-2.0
"""What the reader of SpyreCode refuses: one job per rule, and hostile ones.

A job may break other rules on the way.
"""

import json
import shutil
import struct

import numpy as np
import pytest
from commands import MORE, PLANNED, call, execute, needs_tools, refused, run, says
from spyrecode_jobs import (
    BASE,
    changed,
    claim,
    correct_two,
    far_values,
    hcm,
    image_size,
    insert,
    mix,
    more_steps,
    overlap,
    patched,
    prepare,
    put,
    remove,
    run_step,
    tighten,
    transfer_late,
)

pytestmark = needs_tools

TWO_OPS = PLANNED / "two_ops_symbolic.mlir"


@pytest.fixture(scope="module")
def jobs(tmp_path_factory):
    """Folders of valid jobs: three with three array arguments, one with a pool."""
    root = tmp_path_factory.mktemp("jobs")
    symbolic = ["--symbolic-args"]
    for name, planned, flags in (
        ("bound", TWO_OPS, []),
        ("symbolic", TWO_OPS, symbolic),
        ("spec", TWO_OPS, [*symbolic, "--spyrecode-flavor=spec"]),
        ("pooled", MORE / "matmul.mlir", []),
    ):
        run("spyre-translate", "--to-spyrecode", *flags, planned, "-o", root / name)
    return {folder.name: folder for folder in root.iterdir()}


def validate(folder):
    return call("spyre-translate", "--validate-spyrecode", folder)


def check_refused(folder, said):
    done = validate(folder)
    assert done.returncode == 1 and says(done.stdout, said), done.stdout + done.stderr
    return done.stdout


#: By name: the job that is changed, how, and what is said of it.
CHANGED = {
    # Files.
    "missing": (
        "bound",
        prepare(1, "init_bin_file", "other.bin"),
        "'other.bin': cannot be opened: No such file or directory [SPYRECODE-FILE-C1]",
    ),
    "outside": (
        "bound",
        prepare(1, "init_bin_file", "../bound/program.bin"),
        "'../bound/program.bin' is not the plain name of a file [SPYRECODE-FILE-C1]",
    ),
    "absolute": (
        "bound",
        prepare(1, "init_bin_file", "/etc/passwd"),
        "/JobPreparationPlan/1/properties/init_bin_file: '/etc/passwd': '/etc/passwd' is not the plain name of a file [SPYRECODE-FILE-C1]",
    ),
    # Form.
    "surprise": (
        "bound",
        lambda code: code.update(Other=[]),
        "/Other: the key 'Other' does not belong here [SPYRECODE-FORM-C1]",
    ),
    "no exec": (
        "bound",
        lambda code: code.pop("JobExecPlan"),
        "/JobExecPlan: expected a list of commands, at most 4096 [SPYRECODE-FORM-C1]",
    ),
    "unknown": (
        "bound",
        insert("JobExecPlan", 0, "Halt"),
        "/JobExecPlan/0/command: expected Allocate, InitTransfer, ComputeOnHost, DataTransfer or ComputeOnDevice [SPYRECODE-FORM-C1]",
    ),
    "no direction": (
        "symbolic",
        run_step(1, "dirn", "sideways"),
        '/JobExecPlan/1/properties/dirn: expected "false" (to the device) or "true" [SPYRECODE-FORM-C2]',
    ),
    "extra": (
        "bound",
        prepare(0, "colour", "red"),
        "/JobPreparationPlan/0/properties/colour: the property 'colour' does not belong here [SPYRECODE-FORM-C3]",
    ),
    "mixed": (
        "symbolic",
        mix,
        "/JobExecPlan/1/properties/direction: 'direction' belongs to the other flavour of SpyreCode than the keys before [SPYRECODE-FORM-C3]",
    ),
    "negative": (
        "bound",
        prepare(0, "size", -128),
        "/JobPreparationPlan/0/properties/size: expected a number from 0 to 9223372036854775807, or a string of one [SPYRECODE-FORM-C4]",
    ),
    "negative text": (
        "bound",
        prepare(0, "size", "-128"),
        "/JobPreparationPlan/0/properties/size: expected a number from 0 to 9223372036854775807, or a string of one [SPYRECODE-FORM-C4]",
    ),
    "too large": (
        "bound",
        prepare(0, "size", "9223372036854775808"),
        "/JobPreparationPlan/0/properties/size: expected a number from 0 to 9223372036854775807, or a string of one [SPYRECODE-FORM-C4]",
    ),
    # Preparation.
    "one": (
        "bound",
        remove("JobPreparationPlan", 1),
        "/JobPreparationPlan: expected one Allocate, then at least one InitTransfer [SPYRECODE-PREP-C1]",
    ),
    "swapped": (
        "bound",
        lambda code: code["JobPreparationPlan"].reverse(),
        "/JobPreparationPlan: expected one Allocate, then at least one InitTransfer [SPYRECODE-PREP-C1]",
    ),
    "odd size": (
        "bound",
        prepare(0, "size", "100"),
        "/JobPreparationPlan/0/properties/size: 100 is not a positive multiple of 128 of at most 16 GiB [SPYRECODE-PREP-C2]",
    ),
    "giant": (
        "bound",
        prepare(0, "size", str((16 << 30) + 128)),
        "/JobPreparationPlan/0/properties/size: 17179869312 is not a positive multiple of 128 of at most 16 GiB [SPYRECODE-PREP-C2]",
    ),
    "beyond": (
        "bound",
        prepare(1, "dev_ptr", str(BASE + 128)),
        "bytes from byte 128 of the allocation of...[SPYRECODE-PREP-C3]",
    ),
    "overlap": (
        "bound",
        overlap,
        "/JobPreparationPlan/2/properties/dev_ptr: the regions of two InitTransfers overlap [SPYRECODE-PREP-C3]",
    ),
    "short": (
        "bound",
        prepare(1, "size", lambda size: str(int(size) - 128)),
        "[SPYRECODE-PREP-C4]",
    ),
    "low": (
        "bound",
        prepare(1, "dev_ptr", "128"),
        "/JobPreparationPlan/1/properties/dev_ptr: 0x80 is not a multiple of 128 from 0x1C00000000 to 0x1FFFFFFF80 [SPYRECODE-ADDRESS-C1]",
    ),
    "odd address": (
        "bound",
        prepare(1, "dev_ptr", str(BASE + 90)),
        "/JobPreparationPlan/1/properties/dev_ptr: 0x1C0000005A is not a multiple of 128 from 0x1C00000000 to 0x1FFFFFFF80 [SPYRECODE-ADDRESS-C1]",
    ),
    # Execution.
    "nothing": (
        "bound",
        remove("JobExecPlan", 0),
        "/JobExecPlan: the plan has no ComputeOnDevice [SPYRECODE-EXEC-C1]",
    ),
    "allocate late": (
        "bound",
        insert("JobExecPlan", 0, "Allocate", size="128"),
        "/JobExecPlan/0: the command is not allowed in JobExecPlan [SPYRECODE-EXEC-C1]",
    ),
    "no image": (
        "symbolic",
        run_step(2, "job_bin_ptr", str(BASE + 128)),
        "/JobExecPlan/2/properties/job_bin_ptr: no InitTransfer put an image at 0x1C00000080 [SPYRECODE-EXEC-C2]",
    ),
    "undefined": (
        "symbolic",
        run_step(1, "host_handle", "nobody"),
        "/JobExecPlan/1/properties/host_handle: there is no handle 'nobody' at this point [SPYRECODE-EXEC-C3]",
    ),
    "self": (
        "symbolic",
        run_step(0, "ihandle", "correction"),
        "/JobExecPlan/0/properties/ihandle: there is no handle 'correction' at this point [SPYRECODE-EXEC-C3]",
    ),
    "reserved": (
        "symbolic",
        run_step(0, "ohandle", "iargs"),
        "/JobExecPlan/0/properties/ohandle: 'iargs' is not the name of a new handle [SPYRECODE-EXEC-C3]",
    ),
    "order": (
        "symbolic",
        lambda code: code["JobExecPlan"].reverse(),
        "/JobExecPlan/1/properties/host_handle: there is no handle 'correction' at this point [SPYRECODE-EXEC-C3]",
    ),
    "part": (
        "symbolic",
        run_step(1, "size", "128"),
        "/JobExecPlan/1/properties/size: the handle has 512 bytes, not 128 [SPYRECODE-EXEC-C4]",
    ),
    "over image": (
        "symbolic",
        run_step(1, "dev_ptr", str(BASE)),
        "/JobExecPlan/1/properties/dev_ptr: the transfer writes over an image [SPYRECODE-EXEC-C4]",
    ),
    "claimed": (
        "bound",
        claim,
        "/JobExecPlan/1/properties/size: handles have at most 16777216 bytes together [SPYRECODE-EXEC-C4]",
    ),
    "late transfer": (
        "symbolic",
        transfer_late,
        "/JobExecPlan: after a ComputeOnHost at the start expected its DataTransfer to the device, then ComputeOnDevice only [SPYRECODE-EXEC-C5]",
    ),
    "shape": (
        "symbolic",
        run_step(0, "ishape", ["3", "1"]),
        "/JobExecPlan/0/properties/ishape: expected one number, found 2 [SPYRECODE-HOST-C1]",
    ),
    "fewer": (
        "symbolic",
        run_step(0, "ishape", ["4"]),
        "/JobExecPlan/0/properties/ishape: programs have 3 arguments, found 4 [SPYRECODE-HOST-C1]",
    ),
    "far values": (
        "bound",
        far_values,
        "/JobExecPlan/2/properties/ishape: 17 values are not in the 128 bytes of 'head' [SPYRECODE-HOST-C1]",
    ),
    "output": (
        "symbolic",
        run_step(0, "size", "256"),
        "/JobExecPlan/0/properties/size: the output has 256 bytes, but hcm describes 4 rows of 128 [SPYRECODE-HOST-C2]",
    ),
    # The correction tensor.
    "no constants": (
        "symbolic",
        hcm(lambda hcm: hcm.pop("senConstants")),
        "/JobExecPlan/0/properties/hcm: expected a list 'vdci' of at most 65536 rows and an object 'senConstants' [SPYRECODE-HOST-C3]",
    ),
    "far input": (
        "symbolic",
        hcm(lambda hcm: hcm["vdci"][0].update(index=7)),
        "/JobExecPlan/0/properties/hcm/vdci/0: the row refers to an input or an offset that does not exist [SPYRECODE-HOST-C3]",
    ),
    "zero divisor": (
        "symbolic",
        hcm(lambda hcm: hcm["vdci"][0].update(divisor=0)),
        "/JobExecPlan/0/properties/hcm/vdci/0: the row refers to an input or an offset that does not exist [SPYRECODE-HOST-C3]",
    ),
    "row twice": (
        "symbolic",
        hcm(lambda hcm: hcm["vdci"][1].update(row=1)),
        "/JobExecPlan/0/properties/hcm/vdci/1: row 1 is described twice [SPYRECODE-HOST-C3]",
    ),
    "row gap": (
        "symbolic",
        hcm(lambda hcm: hcm["vdci"][2].update(row=9)),
        "/JobExecPlan/0/properties/hcm: expected at least one row, and rows from 0 without a gap [SPYRECODE-HOST-C3]",
    ),
    "wrong rows": (
        "symbolic",
        hcm(lambda hcm: hcm["vdci"][0].update(index=1)),
        "/JobExecPlan/2: the correction tensor is not the program's: a tag, then its arguments [SPYRECODE-IMAGE-C5]",
    ),
    "wrong tag": (
        "symbolic",
        hcm(lambda hcm: hcm["senConstants"].update({"0": 1})),
        "/JobExecPlan/2: the correction tensor is not the program's: a tag, then its arguments [SPYRECODE-IMAGE-C5]",
    ),
    "uncorrected": (
        "symbolic",
        lambda code: code["JobExecPlan"].__delitem__(slice(2)),
        "/JobExecPlan/0: no DataTransfer before it writes the program's correction tensor of 512 bytes at",
    ),
    "two corrected": (
        "symbolic",
        correct_two,
        "no DataTransfer before it writes the program's correction tensor",
    ),
    # The pool behind the image.
    "tight": (
        "pooled",
        tighten,
        "spyrecode.json: the pool of image 0 overlaps an image or leaves the allocation [SPYRECODE-IMAGE-C4]",
    ),
}


@pytest.mark.parametrize(
    ("base", "change", "said"), CHANGED.values(), ids=CHANGED.keys()
)
def test_changed(base, change, said, jobs, tmp_path):
    check_refused(changed(jobs[base], tmp_path / "job", change), said)


@pytest.mark.parametrize(
    ("base", "plan", "step", "keys"),
    [
        ("bound", "JobPreparationPlan", 0, {"size"}),
        ("bound", "JobPreparationPlan", 1, {"init_bin_file", "size", "dev_ptr"}),
        ("symbolic", "JobExecPlan", 0, {"ihandle", "ishape", "ohandle", "size", "hcm"}),
        ("symbolic", "JobExecPlan", 1, {"dirn", "host_handle", "size", "dev_ptr"}),
        ("symbolic", "JobExecPlan", 2, {"job_bin_ptr"}),
    ],
)
def test_property_is_missing(base, plan, step, keys, jobs, tmp_path):
    code = json.loads((jobs[base] / "spyrecode.json").read_text())
    assert code[plan][step]["properties"].keys() == keys
    for key in keys:
        folder = changed(jobs[base], tmp_path / key, put(plan, step, key, None))
        place = f"/{plan}/{step}/properties: "
        missing = f"the property '{key}' is missing [SPYRECODE-FORM-C2]"
        check_refused(folder, place + missing)


def test_claimed_often(jobs, tmp_path):
    def change(code):
        claim(code)
        code["JobExecPlan"][1]["properties"]["size"] = str(6 << 20)
        for name in ("h0", "h1", "h1"):
            again = json.loads(json.dumps(code["JobExecPlan"][1]))
            again["properties"]["host_handle"] = name
            code["JobExecPlan"].append(again)
        # A handle that was refused is still one that others may name.
        again["properties"]["dirn"] = "false"

    text = check_refused(
        changed(jobs["bound"], tmp_path / "job", change),
        "/JobExecPlan/3/properties/size: handles have at most 16777216 bytes together [SPYRECODE-EXEC-C4]",
    )
    assert sum("SPYRECODE" in line for line in text.splitlines()) == 1


def test_two_images_with_other_arguments(jobs, tmp_path):
    pooled = jobs["pooled"] / "program.bin"

    def change(code):
        code["JobPreparationPlan"][0]["properties"]["size"] = str(1 << 20)
        again = {"init_bin_file": "second.bin", "size": str(pooled.stat().st_size)}
        again["dev_ptr"] = str(BASE + (1 << 16))
        code["JobPreparationPlan"].append(
            {"command": "InitTransfer", "properties": again}
        )
        compute = {"job_bin_ptr": again["dev_ptr"]}
        code["JobExecPlan"].append(
            {"command": "ComputeOnDevice", "properties": compute}
        )

    folder = changed(jobs["bound"], tmp_path / "job", change)
    shutil.copy(pooled, folder / "second.bin")
    check_refused(
        folder,
        "/JobExecPlan: image 1 must take the same arguments as the first program [SPYRECODE-EXEC-C6]",
    )


# --- texts that are no job, and files that nobody should trust ---

TEXTS = {
    "truncated": (
        lambda text: text.partition("program.bin")[0] + "program.bi",
        "spyrecode.json:12:37: /JobPreparationPlan/1/properties/init_bin_file: malformed JSON near '\"program.bi' [SPYRECODE-FILE-C2]",
    ),
    "deep": (
        lambda text: "[" * 100000,
        "nested deeper than 64 levels [SPYRECODE-FILE-C2]",
    ),
    "twice": (
        lambda text: text.replace('"size"', '"size": "128", "size"', 1),
        "/JobPreparationPlan/0/properties/size: the key 'size' occurs twice in an object [SPYRECODE-FILE-C2]",
    ),
    "overflow": (
        lambda text: resized(text, "1" * 30),
        "/JobPreparationPlan/0/properties/size: numbers are 64-bit integers, but found 111111111111111111111111111111 [SPYRECODE-FILE-C2]",
    ),
    "fraction": (
        lambda text: resized(text, "12.5"),
        "/JobPreparationPlan/0/properties/size: numbers are 64-bit integers, but found 12.5 [SPYRECODE-FILE-C2]",
    ),
    "array": (
        lambda text: "[]",
        "spyrecode.json: expected an object [SPYRECODE-FORM-C1]",
    ),
}


def resized(text, number):
    """With another number as the sizes of the image."""
    return text.replace(f'"{image_size(json.loads(text))}"', number)


@pytest.mark.parametrize(("change", "said"), TEXTS.values(), ids=TEXTS.keys())
def test_text(change, said, jobs, tmp_path):
    folder = tmp_path / "job"
    shutil.copytree(jobs["bound"], folder)
    path = folder / "spyrecode.json"
    path.write_text(change(path.read_text()))
    check_refused(folder, said)


def test_linked_image(jobs, tmp_path):
    change = prepare(1, "init_bin_file", "own.bin")
    folder = changed(jobs["bound"], tmp_path / "job", change)
    (folder / "own.bin").symlink_to(jobs["bound"] / "program.bin")
    check_refused(
        folder, "'own.bin': is a link, and links are not followed [SPYRECODE-FILE-C1]"
    )


def test_empty_folder(tmp_path):
    check_refused(
        tmp_path,
        "spyrecode.json: cannot be opened: No such file or directory [SPYRECODE-FILE-C1]",
    )


def test_huge_image(jobs, tmp_path):
    folder = tmp_path / "job"
    shutil.copytree(jobs["bound"], folder)
    with open(folder / "program.bin", "wb") as file:
        file.truncate(1 << 40)
    check_refused(
        folder,
        "'program.bin': has 1099511627776 bytes, at most 268435456 are read [SPYRECODE-FILE-C1]",
    )


# --- images ---


def word(number):
    return struct.pack("<I", number)


#: By name: the job, the place of the bytes, the bytes, and what is said of them.
IMAGES = {
    "magic": (
        "bound",
        0,
        b"X",
        "program.bin: an image starts with SPYREIMG [SPYRECODE-IMAGE-C1]",
    ),
    "version": (
        "bound",
        8,
        word(2),
        "program.bin: images of version 1 are read, found version 2 [SPYRECODE-IMAGE-C1]",
    ),
    "said size": (
        "bound",
        16,
        struct.pack("<Q", 1 << 60),
        "program.bin: the header says 1152921504606846976 bytes, a multiple of 128, but there are",
    ),
    "payload": (
        "bound",
        24,
        struct.pack("<Q", (1 << 64) - 1),
        "program.bin: the program of 18446744073709551615 bytes at 256 does not lie in the image [SPYRECODE-IMAGE-C1]",
    ),
    "payload offset": (
        "bound",
        12,
        word(0xFFFFFFFF),
        "bytes at 4294967295 does not lie in the image [SPYRECODE-IMAGE-C1]",
    ),
    "pool offset": (
        "bound",
        48,
        struct.pack("<QQ", 128, 1 << 60),
        "program.bin: the pool of 1152921504606846976 bytes at 128 is not a region of a segment behind the image [SPYRECODE-IMAGE-C1]",
    ),
    "rank": (
        "bound",
        128,
        word(0xFFFFFFFF),
        "program.bin: argument 0 has 4294967295 dimensions, at most 64 are read [SPYRECODE-IMAGE-C1]",
    ),
    "group": (
        "bound",
        132,
        struct.pack("<i", -7),
        "program.bin: the tile group -7 is not one [SPYRECODE-IMAGE-C1]",
    ),
    "arguments": (
        "bound",
        44,
        word(0xFFFFFFFF),
        "program.bin: there are 4294967295 arguments, at most 65536 are read [SPYRECODE-IMAGE-C1]",
    ),
    "nonsense": (
        "bound",
        256,
        bytes(64),
        "program.bin: the program is not MLIR bytecode [SPYRECODE-IMAGE-C3]",
    ),
    "wrong count": (
        "bound",
        44,
        word(2),
        "program.bin: the program has 3 arguments, the header says 2 [SPYRECODE-IMAGE-C3]",
    ),
    "rows": (
        "symbolic",
        40,
        word(9),
        "program.bin: the correction tensor has 9 rows, but the program needs 4 [SPYRECODE-IMAGE-C3]",
    ),
    "no room": (
        "bound",
        48,
        lambda image: struct.pack("<QQ", len(image), 128),
        "program.bin: the program has 0 pools, the header says 128 bytes [SPYRECODE-IMAGE-C3]",
    ),
}


@pytest.mark.parametrize(
    ("base", "offset", "data", "said"), IMAGES.values(), ids=IMAGES.keys()
)
def test_image(base, offset, data, said, jobs, tmp_path):
    check_refused(patched(jobs[base], tmp_path / "job", offset, data), said)


def test_damaged_image_does_not_run(jobs, tmp_path):
    folder = patched(jobs["bound"], tmp_path / "job", 300, b"\xff", sealed=False)
    said = "program.bin: the image is damaged: its checksum does not match [SPYRECODE-IMAGE-C2]"
    check_refused(folder, said)
    zeros = ["--arg", "zeros"] * 3
    text = refused("spyre-run", folder, *zeros, "--out-dir", tmp_path / "out")
    assert f"job' is not valid SpyreCode:\n{said}" in text
    assert not (tmp_path / "out").exists()


def test_report_as_json(jobs, tmp_path):
    folder = changed(jobs["bound"], tmp_path / "job", prepare(0, "colour", "red"))
    text = refused("spyre-translate", "--validate-spyrecode", "--json", folder)
    report = json.loads(text)
    assert report["valid"] is False
    found = report["violations"][0]
    assert found["file"] == "spyrecode.json"
    assert found["path"] == "/JobPreparationPlan/0/properties/colour"
    assert f"[{found['rule']}]" == "[SPYRECODE-FORM-C3]"


# --- what is valid ---


@pytest.mark.parametrize("name", ["bound", "symbolic", "spec"])
def test_valid(name, jobs):
    done = validate(jobs[name])
    assert done.returncode == 0 and "valid" in done.stdout


def test_hexadecimal_address(jobs, tmp_path):
    change = prepare(1, "dev_ptr", hex(BASE))
    assert validate(changed(jobs["bound"], tmp_path / "job", change)).returncode == 0


def test_every_kind_of_step_and_several_images(jobs, tmp_path):
    more = changed(jobs["bound"], tmp_path / "more", more_steps)
    assert validate(more).returncode == 0
    x = np.linspace(-2, 2, 8192, dtype=np.float16).reshape(64, 128)
    expected = execute(jobs["bound"], [x, x, "zeros"], tmp_path / "once")
    found = execute(more, [x, x, "zeros"], tmp_path / "twice")
    assert expected.keys() == found.keys() and expected
    for name, values in expected.items():
        assert values.tobytes() == found[name].tobytes()

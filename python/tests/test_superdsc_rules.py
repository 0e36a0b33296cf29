# SPDX-License-Identifier: Apache-2.0
"""What the reader of SuperDSC bundles refuses."""

import json
import os
import re

import pytest
import sdsc_bundles
from commands import (
    MORE,
    ROOT,
    call,
    needs_tools,
    refused,
    run,
    says,
)
from sdsc_broken import BROKEN, numbered, with_segments
from sdsc_bundles import add, looped_add, program, sdsc, sized_add, tensor
from sdsc_manifests import manifest, summed, through_pool

pytestmark = needs_tools

RULES = ROOT / "include/Spyre/Dialect/SDSCBundle/IR/SDSCBundleRules.td"


def validate(folder):
    return call("spyre-translate", "--validate-superdsc", folder)


# --- one bundle per rule ---


@pytest.mark.parametrize("broken", list(numbered(BROKEN)))
def test_rule(broken, tmp_path):
    broken.write(tmp_path / "bundle")
    assert broken.said in refused(
        "spyre-translate", "--validate-superdsc", tmp_path / "bundle"
    )


def test_every_rule_is_broken():
    rules = set(re.findall(r"- (SDSC-[A-Z]+-C\d+):", RULES.read_text()))
    assert rules == {broken.rule for broken in BROKEN}


@pytest.mark.parametrize(
    "files",
    [
        pytest.param(add(), id="alone"),
        pytest.param(sized_add(), id="sizes"),
        pytest.param(looped_add(), id="loop up to a size"),
        pytest.param(manifest(), id="manifest"),
        pytest.param(summed({"out": 100}), id="masked"),
        pytest.param(through_pool(), id="pool"),
        pytest.param(
            manifest() | {"bundle.mlir": with_segments("0, 1, 2")}, id="segments"
        ),
    ],
)
def test_valid(files, tmp_path):
    sdsc_bundles.write(tmp_path, files)
    done = validate(tmp_path)
    assert done.returncode == 0 and "valid" in done.stdout


def test_pool_holds_what_bundles_use(tmp_path):
    folder = tmp_path / "bundle"
    run("spyre-translate", "--to-superdsc", MORE / "several.mlir", "-o", folder)
    whole = json.loads((folder / "manifest.json").read_text())
    used = 7680
    assert used < whole["pool_bytes"]
    for size in (used - 128, used):
        file = json.dumps(whole | {"pool_bytes": size})
        (folder / "manifest.json").write_text(file)
        done = validate(folder)
        assert done.returncode == int(size < used)
        said = f"pool_bytes is {size}, but the bundles use {used} bytes of the pool"
        assert (said in done.stdout) == (size < used)


# --- the names of parameters say which argument they are ---

SIZED = sized_add()["bundle.mlir"]


def with_addresses(before, *numbers):
    """The bundle with addresses in this order, `before` in front of each."""
    kind = "!sdscbundle.input_arg<index>"
    given = ", ".join(f"%arg_{n}_base_addr: {kind}" for n in range(3))
    assert given in SIZED
    wanted = ", ".join(f"{before}%arg_{n}_base_addr: {kind}" for n in numbers)
    return SIZED.replace(given, wanted)


def rewritten(folder, text, *options):
    sdsc_bundles.write(folder, sized_add() | {"bundle.mlir": text})
    copy = folder / "copy"
    run("spyre-translate", "--rewrite-superdsc", *options, folder, "-o", copy)
    return (copy / "bundle.mlir").read_text()


@pytest.mark.parametrize("options", [[], ["--lenient"]], ids=["strict", "lenient"])
@pytest.mark.parametrize(
    "text",
    [
        "// func.func @f(%a)\n" + with_addresses("", 2, 0, 1),
        "// func.func (\r" + with_addresses("", 2, 0, 1),
        with_addresses("\n// %foo, (first)\n", 2, 0, 1),
        with_addresses("", 2, 0, 1).replace(
            "module {", 'module attributes {sdscbundle.note = "func.func (%a)"} {'
        ),
    ],
    ids=["comment", "comment up to a return", "comments between", "string"],
)
def test_names_of_parameters(text, options, tmp_path):
    straight = rewritten(tmp_path / "straight", with_addresses("", 0, 1, 2))
    expected = rewritten(tmp_path / "swapped", with_addresses("", 2, 0, 1))
    assert "%arg_2_base_addr: !sdscbundle.input_arg<index>, %arg_0" in expected
    assert expected != straight
    assert rewritten(tmp_path / "given", text, *options) == expected


def test_lenient_keeps_places_and_sizes(tmp_path):
    size = re.search(r"%dim\S*: [^>]*>", SIZED)[0]
    address = "%arg_1_base_addr: !sdscbundle.input_arg<index>"
    text = SIZED.replace(size, f"{size},\n{size}").replace(
        address, f"{address},\n  // again\n{address}"
    )
    assert rewritten(tmp_path, text, "--lenient") == rewritten(tmp_path, SIZED)
    spoil(tmp_path, "bundle.mlir", text.replace("return", "foo"))
    done = call("spyre-run", "--lenient", tmp_path, *["--arg", "zeros"] * 4)
    line = 1 + text[: text.index("return")].count("\n")
    assert f"bundle.mlir:{line}:" in done.stderr


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            ("arg_0_base", "arg0"),
            "bundle.mlir:3:25: parameter 0, an address, must be named %arg_<number>_base_addr or %pool_base_addr, found %arg0",
        ),
        (("arg_0_base_addr", "arg_00_base_addr"), "found %arg_00_base_addr"),
        (("arg_0_base_addr", "arg_0-1_base_addr"), "found %arg_0-1_base_addr"),
        (
            ("arg_0_base_addr", "arg_-1_base_addr"),
            "parameter 0 has an argument's number twice or out of range",
        ),
    ],
)
def test_names_of_no_parameters(change, said, tmp_path):
    text = SIZED.replace(*change)
    assert text != SIZED
    sdsc_bundles.write(tmp_path, sized_add() | {"bundle.mlir": text})
    done = validate(tmp_path)
    assert done.returncode == 1 and said in done.stdout


def test_locations_are_not_names(tmp_path):
    """An argument may say that it stands where another does."""

    def place(text, places):
        for number, column in enumerate(places):
            given = f"%arg_{number}_base_addr: !sdscbundle.input_arg<index>"
            there = f' loc("bundle.mlir":3:{column:03})'
            text = text.replace(given, given + there, 1)
        return text

    (line,) = (t for t in place(SIZED, (0, 0)).splitlines() if "func.func" in t)
    text = place(SIZED, [line.index(f"%arg_{n}") + 1 for n in (1, 0)])
    sdsc_bundles.write(tmp_path, sized_add() | {"bundle.mlir": text})
    done = validate(tmp_path)
    said = "parameter 1, an address, must be named"
    assert done.returncode == 1 and said in done.stdout
    assert "found no name" in done.stdout


# --- files that nobody should trust ---

TEXT = add()["bundle.mlir"]
LOOP = TEXT.replace(
    "\t\tsdscbundle",
    "\t\t%c0 = arith.constant 0 : index\n\t\t%c1 = arith.constant 1 : index\n"
    "\t\t%n = arith.constant 1000000000 : index\n"
    "\t\tscf.for %i = %c0 to %n step %c1 {\n\t\tsdscbundle",
).replace("\t\treturn", "\t\t}\n\t\treturn")
SUMS = "\t\t%s0 = arith.constant 128 : index\n" + "".join(
    f"\t\t%s{n} = arith.addi %s{n - 1}, %s{n - 1} : index\n" for n in range(1, 80)
)
OUTSIDE = {
    "version": 1,
    "pool_bytes": 0,
    "arguments": [],
    "buffers": [],
    "bundles": [{"folder": "../good", "pool": False, "arguments": [], "files": []}],
}
#: By name: the file that differs, what is in it, None if it is absent, and what is
#: said of it.
HOSTILE = {
    "truncated": (
        "sdsc_0.json",
        '{"0_add": {"sdscFoldProps_": [{"factor_"',
        "sdsc_0.json:1:...: /0_add/sdscFoldProps_/...factor_: malformed JSON near",
    ),
    "deep": (
        "sdsc_0.json",
        '{"0_add": ' + "[" * 100000 + "]" * 100000 + "}",
        "sdsc_0.json: /0_add/...: nested deeper than 64 levels [SDSC-FILE-C2]",
    ),
    "binary": ("sdsc_0.json", bytes(range(256)), "sdsc_0.json:1:1: malformed JSON"),
    "overflow": (
        "sdsc_0.json",
        '{"0_add": 99999999999999999999}',
        "sdsc_0.json: /0_add: numbers are 64-bit integers, but found 99999999999999999999",
    ),
    "array": (
        "sdsc_0.json",
        [1, 2, 3],
        "sdsc_0.json: expected an object with one key, <index>_<opfunc>, found an array [SDSC-FORM-C1]",
    ),
    "empty": ("sdsc_0.json", "", "sdsc_0.json:1:1: malformed JSON"),
    "behind zero": (
        "sdsc_0.json",
        json.dumps(add()["sdsc_0.json"]) + "\0 behind",
        "sdsc_0.json:1:...: malformed JSON [SDSC-FILE-C2]",
    ),
    "missing": (
        "sdsc_0.json",
        None,
        "bundle.mlir:3: 'sdsc_0.json' is not the plain name of a file in the folder [SDSC-BUNDLE-C2]",
    ),
    "no program": (
        "bundle.mlir",
        None,
        "bundle.mlir: cannot be opened: No such file or directory [SDSC-FILE-C1]",
    ),
    "deep program": (
        "bundle.mlir",
        "module {" + "scf.if {" * 100000,
        "bundle.mlir:1:520: more than 64 brackets or signs nested in each other [SDSC-BUNDLE-C1]",
    ),
    "alias": (
        "bundle.mlir",
        "!a = tuple<i1, i1>\n!b = tuple<!a, !a>\n" + TEXT,
        "bundle.mlir:1:1: aliases other than those of affine maps are not part of a bundle [SDSC-BUNDLE-C1]",
    ),
    "alias behind": (
        "bundle.mlir",
        TEXT + "module {} !a = tuple<i1, i1> !-b = tuple<!a, !a>\n",
        "bundle.mlir:7:11: aliases other than those of affine maps are not part of a bundle [SDSC-BUNDLE-C1]",
    ),
    "alias of an attribute": (
        "bundle.mlir",
        "#a-1 = // affine_map<\n [1, 1]\n" + TEXT,
        "bundle.mlir:1:1: aliases other than those of affine maps are not part of a bundle [SDSC-BUNDLE-C1]",
    ),
    "signs on lines": (
        "bundle.mlir",
        "#m = affine_map<(d0) -> (" + "\n-" * 10000 + "\nd0)>\n" + TEXT,
        "bundle.mlir:66:1: more than 64 brackets or signs nested in each other [SDSC-BUNDLE-C1]",
    ),
    "terms on lines": (
        "bundle.mlir",
        "#m = affine_map<(d0) -> (d0" + "\n + d0 * 3" * 16000 + "\n)>\n" + TEXT,
        "bundle.mlir:257:...: more than 512 operators in one expression [SDSC-BUNDLE-C1]",
    ),
    "array of indices": (
        "bundle.mlir",
        with_segments("0").replace("array<i64", "array // of\n < index"),
        "bundle.mlir:3:4: expected an integer or float type of whole bytes as the type of an array's elements, such as i64, found 'index' [SDSC-BUNDLE-C1]",
    ),
    "outside": (
        "bundle.mlir",
        program("../good/sdsc_0.json"),
        "bundle.mlir:3: '../good/sdsc_0.json' is not the plain name of a file in the folder",
    ),
    "absolute": (
        "bundle.mlir",
        program("/etc/passwd"),
        "bundle.mlir:3: '/etc/passwd' is not the plain name of a file in the folder",
    ),
    "symbolic bound": (
        "bundle.mlir",
        LOOP.replace("arith.constant 1000000000", "f"),
        "bundle.mlir:5:",
    ),
    "unsigned loop": (
        "bundle.mlir",
        LOOP.replace("scf.for", "scf.for unsigned"),
        "bundle.mlir:6:3: a loop of a bundle compares signed numbers, but this one is unsigned [SDSC-BUNDLE-C1]",
    ),
    "sum": (
        "bundle.mlir",
        TEXT.replace("\t\treturn", SUMS + "\t\treturn"),
        "bundle.mlir:...: the sum of two arguments, or one that overflows, is not an address [SDSC-BUNDLE-C1]",
    ),
    "manifest outside": (
        "manifest.json",
        OUTSIDE,
        "manifest.json: /bundles/0/folder: '../good' is not a folder inside this one [SDSC-MANIFEST-C2]",
    ),
}


def spoil(folder, name, content):
    files = add() | {name: content}
    sdsc_bundles.write(folder, {k: v for k, v in files.items() if v is not None})


@pytest.mark.parametrize(
    ("file", "content", "said"), HOSTILE.values(), ids=HOSTILE.keys()
)
def test_hostile(file, content, said, tmp_path):
    spoil(tmp_path / "bundle", file, content)
    sdsc_bundles.write(tmp_path / "good", add())
    done = validate(tmp_path / "bundle")
    assert done.returncode == 1 and says(done.stdout, said), done.stdout


def make_huge(path):
    with open(path, "wb") as file:
        file.truncate(1 << 40)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (os.mkfifo, "sdsc_0.json: is not a regular file [SDSC-FILE-C1]"),
        (os.mkdir, "sdsc_0.json: is not a regular file [SDSC-FILE-C1]"),
        (
            make_huge,
            "sdsc_0.json: has 1099511627776 bytes, at most 67108864 are read [SDSC-FILE-C1]",
        ),
    ],
    ids=["pipe", "folder", "huge"],
)
def test_hostile_kind_of_file(make, said, tmp_path):
    spoil(tmp_path, "sdsc_0.json", None)
    make(tmp_path / "sdsc_0.json")
    done = validate(tmp_path)
    assert done.returncode == 1 and said in done.stdout


def test_hostile_folders(tmp_path):
    sdsc_bundles.write(tmp_path / "good", add())
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "bundle_0").symlink_to("../good")
    done = validate(tmp_path / "linked")
    said = "bundle_0: 'bundle_0' is not a folder inside the bundle [SDSC-FILE-C1]"
    assert done.returncode == 1 and said in done.stdout
    done = validate(tmp_path / "nowhere")
    assert done.returncode == 1 and "cannot open the folder" in done.stdout


def test_endless_loops_are_not_unrolled(tmp_path):
    spoil(tmp_path, "bundle.mlir", LOOP)
    said = "the loops of bundle.mlir make more than 262144 executions"
    assert said in refused("spyre-translate", "--from-superdsc", tmp_path)


@pytest.mark.parametrize("inner", ["", "executed"])
def test_iterations_of_nothing_are_left_out(inner, tmp_path):
    """Loops around nothing, in one that is unrolled: its rows overlap."""
    dims = {"mb": (4, 1), "out": (128, 1)}
    more = {"gap": {"mb": 4}}
    tensors = [tensor(["mb", "out"], symbols=[-1 - n], **more) for n in range(2)]
    file = sdsc("neg", dims, [(["mb", "out"], {"out": 64})], tensors)
    execute = (
        "sdscbundle.sdsc_execute (%x, %y) "
        '{sdsc_filename="sdsc_0.json", "symbol_ids"=[-1, -2]}'
    )
    never = f"scf.for %m = %c0 to %c0 step %c1 {{ {execute} }}" if inner else ""
    address = "!sdscbundle.input_arg<index>"
    read = "sdscbundle.input_arg_extract value from"
    text = f"""
#map = affine_map<(d0)[s0] -> (s0 + 128*d0)>
module {{
  func.func @sdsc_bundle(%arg_0_base_addr: {address}, %arg_1_base_addr: {address}) {{
    %a = {read} %arg_0_base_addr : {address} -> index
    %b = {read} %arg_1_base_addr : {address} -> index
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %many = arith.constant 2147483648 : index
    scf.for %i = %c0 to %c2 step %c1 {{
      %x = affine.apply #map(%i)[%a]
      %y = affine.apply #map(%i)[%b]
      {execute}
      scf.for %j = %c0 to %many step %c1 {{
        scf.for %k = %c0 to %many step %c1 {{
          {never}
        }}
      }}
    }}
    return
  }}
}}
"""
    sdsc_bundles.write(tmp_path, {"sdsc_0.json": file, "bundle.mlir": text})
    raised = run("spyre-translate", "--from-superdsc", tmp_path)
    assert raised.count("spyre_graph.neg") == 2 and "scf.for" not in raised


def test_report_as_json(tmp_path):
    spoil(tmp_path, "sdsc_0.json", None)
    make_huge(tmp_path / "sdsc_0.json")
    report = json.loads(
        refused("spyre-translate", "--validate-superdsc", "--json", tmp_path)
    )
    assert report["valid"] is False
    (error,) = report["violations"]
    assert (error["file"], error["path"]) == ("sdsc_0.json", "")
    assert f"[{error['rule']}]" == "[SDSC-FILE-C1]"


def test_invalid_bundle_does_not_run(tmp_path):
    spoil(tmp_path, *HOSTILE["truncated"][:2])
    said = refused("spyre-run", tmp_path, "--arg", "zeros")
    assert "is not a valid bundle" in said and "malformed JSON" in said


# --- what is read of LX and of the pool has been written ---


def step(index, source, target, slices=8):
    dims, order = {"mb": (8, slices), "out": (128, 1)}, ["mb", "out"]
    return sdsc("neg", dims, [(order, {"out": 64})], [source, target], index=index)


def memory(segment):
    return tensor(["mb", "out"], segment << 34)


def lx(address):
    return tensor(["mb", "out"], address, lx=True)


def bundle(*steps, segments=None):
    names = [f"sdsc_{number}.json" for number in range(len(steps))]
    text = program(*names)
    if segments:
        attribute = f"sdscbundle.segments = array<i64: {segments}>"
        text = text.replace("bundle() {", f"bundle() attributes {{{attribute}}} {{")
    return dict(zip(names, steps, strict=True)) | {"bundle.mlir": text}


TO_LX, FROM_LX = step(0, memory(0), lx(256)), step(1, lx(256), memory(1))
FIRST = bundle(step(0, memory(1), memory(0)), segments="-1, 0")
LAST = bundle(step(0, memory(0), memory(1)), segments="-1, 1")
WITHOUT_POOL = bundle(step(0, memory(0), memory(1)), segments="2, 3")
UNWRITTEN = "but no earlier operation has written all of them"
UNREAD = "Tensor1 is left in the pool, but no operation reads it: a bundle after the last one may be missing"


def write(folder, bundles):
    """One bundle, or several in folders of their own."""
    if len(bundles) == 1:
        return sdsc_bundles.write(folder, bundles[0])
    for place, files in enumerate(bundles):
        sdsc_bundles.write(folder / f"bundle_{place}", files)
    return None


@pytest.mark.parametrize(
    "bundles",
    [[bundle(TO_LX, FROM_LX)], [FIRST, LAST]],
    ids=["through LX", "through the pool"],
)
def test_reads_what_is_written(bundles, tmp_path):
    write(tmp_path, bundles)
    run("spyre-run", tmp_path, "--arg", "zeros", "--arg", "zeros")


@pytest.mark.parametrize(
    ("files", "options", "said"),
    [
        (
            bundle(FROM_LX, TO_LX),
            ["--arg", "zeros", "--arg", "zeros"],
            f"sdsc_0.json: Tensor0 is read from bytes 256 to 511 of LX of core 0, {UNWRITTEN}",
        ),
        (
            # Half as many cores read two rows each, of which each has one.
            bundle(TO_LX, step(1, lx(256), memory(1), slices=4)),
            ["--arg", "zeros", "--arg", "zeros"],
            f"sdsc_1.json: Tensor0 is read from bytes 256 to 767 of LX of core 0, {UNWRITTEN}",
        ),
        (
            bundle(step(0, memory(0), memory(1))),
            ["--pool", "--arg", "zeros"],
            f"sdsc_0.json: Tensor0 is read from bytes 0 to 2047 of the pool, {UNWRITTEN}",
        ),
    ],
    ids=["reversed", "fewer cores", "pool"],
)
def test_reads_what_is_not_written(files, options, said, tmp_path):
    sdsc_bundles.write(tmp_path, files)
    assert said in refused("spyre-run", tmp_path, *options)


@pytest.mark.parametrize(
    ("bundles", "said"),
    [
        ([LAST], f"Tensor0 is read from bytes 0 to 2047 of the pool, {UNWRITTEN}"),
        ([FIRST], UNREAD),
        ([FIRST, WITHOUT_POOL], UNREAD),
    ],
    ids=["no first", "no last", "no last of three"],
)
def test_bundle_is_missing(bundles, said, tmp_path):
    for place, files in enumerate(bundles):
        sdsc_bundles.write(tmp_path / f"bundle_{place}", files)
    place = "bundle_0/sdsc_0.json:1:1: error: "
    assert place + said in refused("spyre-translate", "--from-superdsc", tmp_path)

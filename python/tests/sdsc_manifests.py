# SPDX-License-Identifier: Apache-2.0
"""Bundles whose manifest.json says something else than their files."""

from sdsc_bundles import add, program, sdsc, sized_add, tensor

OUT = (["mb", "out"], {"out": 64})


def manifest(**changed):
    shape = {"shape": [8, 128], "strides": [128, 1]}
    layout = {"order": [0, 1], "sparse": False}
    arguments = [
        {"name": f"arg{n}", "dtype": "float16", **shape, **layout} for n in range(3)
    ]
    file = {"file": "sdsc_0.json", "extents": {}, "tensors": [0, 1, 2]}
    file["offsets"] = [0, 0, 0]
    own = {"folder": ".", "pool": False, "arguments": [0, 1, 2], "files": [file]}
    whole = {"version": 1, "pool_bytes": 0, "arguments": arguments, "buffers": []}
    return add() | {"manifest.json": whole | {"bundles": [own]} | changed}


def summed(extents):
    """Sums of rows of 100 elements, with a manifest that says `extents`."""
    tensors = [tensor(OUT[0]), tensor(OUT[0], base=1 << 34, scale={"out": -2})]
    constants = [("samv-maskvalue", "SEN169_FP16", 0)]
    more = {"constants": constants, "mask": {"out": [[100, 28]]}}
    dims = {"mb": (8, 1), "out": (128, 1)}
    whole = manifest()["manifest.json"]
    first, second, _ = whole["arguments"]
    first = first | {"shape": [8, 100], "strides": [100, 1]}
    second = second | {"shape": [8], "strides": [1], "order": [0], "sparse": True}
    (own,) = whole["bundles"]
    file = own["files"][0] | {"extents": extents, "tensors": [0, 1], "offsets": [0, 0]}
    own = own | {"arguments": [0, 1], "files": [file]}
    files = {"sdsc_0.json": sdsc("sum", dims, [OUT], tensors, **more)}
    changed = {"arguments": [first, second], "bundles": [own]}
    return files | {
        "bundle.mlir": program("sdsc_0.json"),
        "manifest.json": whole | changed,
    }


def with_file(**changed):
    """The bundle of add() with a manifest whose entry of the file is changed."""
    (own,) = manifest()["manifest.json"]["bundles"]
    return manifest(bundles=[own | {"files": [own["files"][0] | changed]}])


def extents():
    """Extents of a manifest that are not what the file pads."""
    place = "manifest.json: /bundles/0/files/0/extents/"
    for wrong in (60, 128):
        yield (
            f"{place}out: is {wrong}, but 100 of the 128 iterations of 'out' in 'sdsc_0.json' are not masked [SDSC-MANIFEST-C2]",
            summed({"out": wrong}),
        )
    for dim, extent, size in [("mb", 5, 8), ("out", 128, 128)]:
        yield (
            f"{place}{dim}: is {extent}, but the {size} iterations of '{dim}' in 'sdsc_0.json' have no padding [SDSC-MANIFEST-C2]",
            with_file(extents={dim: extent}),
        )
    yield (
        f"{place}out: is 60, but the 128 iterations of 'out' in 'sdsc_0.json' are not what sticks of 64 pad it to [SDSC-MANIFEST-C2]",
        with_file(extents={"out": 60}),
    )
    yield (
        f"{place}x: is not a dimension of 'sdsc_0.json' [SDSC-MANIFEST-C2]",
        with_file(extents={"x": 1}),
    )
    yield (
        f"{place}out: is 200, but Tensor0 of 'sdsc_0.json' has only 128 elements along 'out' [SDSC-MANIFEST-C2]",
        with_file(extents={"out": 200}),
    )
    yield (
        "sdsc_0.json:1:1: Tensor2 is written in whole sticks, but by 100, the extent of 'out', ends at 100 of the 128 elements of dimension 1 of its buffer [SDSC-MANIFEST-C3]",
        with_file(extents={"out": 100}),
    )


def with_bundle(**changed):
    """The bundle of add() with a manifest whose entry of the bundle is changed."""
    (own,) = manifest()["manifest.json"]["bundles"]
    return manifest(bundles=[own | changed])


def through_pool(read=0, offset=0):
    """Twice neg: into the pool, and out of it from byte `read` on."""
    dims = {"mb": (8, 1), "out": (128, 1)}
    pool, argument, result = 0, 1 << 34, 2 << 34
    places = [(argument, pool), (read, result)]
    files = {
        f"sdsc_{n}.json": sdsc(
            "neg", dims, [OUT], [tensor(OUT[0], base) for base in bases], index=n
        )
        for n, bases in enumerate(places)
    }
    whole = manifest()["manifest.json"]
    first, second, _ = whole["arguments"]
    buffer = {k: v for k, v in first.items() if k not in ("name", "strides")}
    entries = [
        {"file": name, "extents": {}, "tensors": tensors, "offsets": offsets}
        for name, tensors, offsets in zip(
            files, [[0, -1], [-1, 1]], [[0, 0], [offset, 0]], strict=True
        )
    ]
    own = {"folder": ".", "pool": True, "arguments": [0, 1], "files": entries}
    changed = {
        "pool_bytes": 4096,
        "arguments": [first, second],
        "buffers": [buffer],
        "bundles": [own],
    }
    text = {"bundle.mlir": program(*files)}
    return files | text | {"manifest.json": whole | changed}


def places():
    """Arguments, buffers and offsets that addresses contradict."""
    own = "manifest.json: /bundles/0"
    yield (
        f"{own}/arguments: argument 0 is listed twice [SDSC-MANIFEST-C2]",
        with_bundle(arguments=[0, 0, 2]),
    )
    (file,) = manifest()["manifest.json"]["bundles"][0]["files"]
    yield (
        f"{own}/files/1/file: 'sdsc_0.json' is listed twice [SDSC-MANIFEST-C2]",
        with_bundle(files=[file, file]),
    )
    yield (
        f"{own}/files: 'sdsc_0.json', which bundle.mlir executes, has no entry [SDSC-MANIFEST-C2]",
        with_bundle(files=[]),
    )
    starts = "but Tensor0 of 'sdsc_0.json' starts at byte 0 of argument 0"
    yield (
        f"{own}/files/0/tensors/0: is argument 1, {starts} [SDSC-MANIFEST-C2]",
        with_file(tensors=[1, 0, 2]),
    )
    yield (
        f"{own}/files/0/offsets/0: is 128, {starts} [SDSC-MANIFEST-C2]",
        with_file(offsets=[128, 0, 0]),
    )
    buffered = through_pool()
    (entry,) = buffered["manifest.json"]["bundles"]
    first, second = entry["files"]
    for tensors, said in [
        ([-1, -1], f"tensors/0: is buffer 0, {starts}"),
        (
            [0, 1],
            "tensors/1: is argument 1, but Tensor1 of 'sdsc_0.json' starts at byte 0 of the pool",
        ),
    ]:
        changed = entry | {"files": [first | {"tensors": tensors}, second]}
        whole = buffered["manifest.json"] | {"bundles": [changed]}
        yield (
            f"{own}/files/0/{said} [SDSC-MANIFEST-C2]",
            buffered | {"manifest.json": whole},
        )
    yield (
        f"{own}/files/1/offsets/0: is 128, but Tensor0 of 'sdsc_1.json' starts at byte 0 of the pool [SDSC-MANIFEST-C2]",
        through_pool(offset=128),
    )
    yield (
        f"{own}/files/1/offsets/0: lets buffer 0 start at byte 128 of the pool, but /bundles/0/files/0/offsets/1 at byte 0 of the pool [SDSC-MANIFEST-C2]",
        through_pool(read=128),
    )
    sizes = [{"name": "s0", "granularity": 4, "maximum": 8}]
    sized = manifest(sizes=sizes) | sized_add()
    entry = sized["manifest.json"]["bundles"][0] | {"arguments": [0, 1]}
    whole = sized["manifest.json"] | {"bundles": [entry]}
    yield (
        f"{own}/arguments: lacks argument 2, a parameter of bundle.mlir [SDSC-MANIFEST-C2]",
        sized | {"manifest.json": whole},
    )
    text = sized["bundle.mlir"].replace("%arg_0_base_addr", "%pool_base_addr")
    yield (
        f"{own}/pool: is false, but the pool is a parameter of bundle.mlir [SDSC-MANIFEST-C2]",
        sized | {"bundle.mlir": text},
    )


def cases():
    yield from extents()
    yield from places()

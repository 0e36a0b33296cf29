# SPDX-License-Identifier: Apache-2.0
"""The options of torch.compile: one table checks, keys and documents them."""

import json
import sys
from pathlib import Path

import pytest
import torch
from torch_spyre import _C

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

import docs_tables

TABLE = {row["name"]: row for row in _C.compile_options()}


def other_value(row):
    """A value that an option does not have by default."""
    texts = {"device": '{"launchSeconds": 1e-3}', "lx_solver": "greedy"}
    texts["mode"] = "reference"
    if row["name"] in texts:
        return texts[row["name"]]
    if isinstance(row["default"], bool):
        return not row["default"]
    return row["lowest"] if row["default"] != row["lowest"] else row["highest"]


def test_every_option_changes_the_key():
    builder = _C.GraphBuilder()
    plain = _C.get_cache_key(builder, {})
    keys = {plain}
    for name, row in TABLE.items():
        assert _C.get_cache_key(builder, {name: row["default"]}) == plain
        keys.add(_C.get_cache_key(builder, {name: other_value(row)}))
    assert len(keys) == len(TABLE) + 1
    # Where a dump goes changes no program.
    assert _C.get_cache_key(builder, {"dump_dir": "here"}) == plain


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"coers": 4}, "unknown compiler option 'coers'; known are cores, "),
        ({"cores": 0}, "option cores: expected a number from 1 to 32, found 0"),
        ({"cores": 33}, "option cores: expected a number from 1 to 32, found 33"),
        ({"cores": "4"}, "option cores: expected a number from 1 to 32, found '4'"),
        ({"cores": True}, "option cores: expected a number from 1 to 32, found True"),
        ({"cores": 2.0}, "option cores: expected a number from 1 to 32, found 2.0"),
        ({"cores": 2**70}, "option cores: expected a number from 1 to 32, found 1180"),
        ({"lx_planning": "no"}, "option lx_planning: expected True or False"),
        ({"lx_planning": 1}, "option lx_planning: expected True or False, found 1"),
        ({"unroll_loops": None}, "option unroll_loops: expected True or False"),
        ({"mode": 1}, "option mode: expected default or reference, found 1"),
        ({"device": 7}, "option device: expected numbers of the device: a dict"),
    ],
    ids=str,
)
def test_wrong_options_are_errors(options, message):
    with pytest.raises(ValueError, match=message):
        _C.check_compile_options(options)
    function = torch.compile(torch.exp, backend="spyre", options=options)
    with pytest.raises(Exception, match=message):
        function(torch.ones(1, 65, dtype=torch.float16).to("spyre"))


@pytest.mark.parametrize("name", TABLE)
def test_values_other_than_the_default_work(name):
    torch.compiler.reset()
    options = {name: other_value(TABLE[name])}
    if name == "device":
        options = {"device": json.loads(options["device"])}
    x = torch.arange(7 * 65).view(7, 65).remainder(5).half()
    function = torch.compile(lambda x: x * 2 + 1, backend="spyre", options=options)
    assert torch.equal(function(x.to("spyre")).cpu(), x * 2 + 1)


def test_the_script_reads_the_table_as_the_compiler_does():
    rows = [(r["name"], r["default"], r["help"]) for r in TABLE.values()]
    assert docs_tables.options() == rows


# --- device ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("device", "message"),
    [
        ({"lxBytesPerCoer": 1}, "lxBytesPerCoer"),
        ({"effectiveMemoryBytesPerSecond": 0}, "effectiveMemoryBytesPerSecond"),
        ({"numCores": "8"}, "numCores"),
        ([1], "option device: expected numbers of the device"),
        ("none.json", "option device: none.json: "),
    ],
    ids=str,
)
def test_devices_that_cannot_be(device, message):
    function = torch.compile(torch.exp, backend="spyre", options={"device": device})
    with pytest.raises(Exception, match=message):
        function(torch.ones(1, 65, dtype=torch.float16).to("spyre"))


def test_a_device_file_has_each_key_once(tmp_path):
    file = tmp_path / "device.json"
    file.write_text('{"numCores": 4, "numCores": 8}')
    options = {"device": str(file)}
    function = torch.compile(torch.exp, backend="spyre", options=options)
    with pytest.raises(Exception, match="/numCores: the key 'numCores' occurs twice"):
        function(torch.ones(1, 65, dtype=torch.float16).to("spyre"))


def test_a_plan_is_for_its_device(tmp_path, monkeypatch):
    """From a dict and from a file; it has the device's numbers, and its cores."""
    numbers = {"numCores": 8, "lxBytesPerCore": 262144}
    (tmp_path / "device.json").write_text(json.dumps(numbers))
    texts = []
    for number, device in enumerate([numbers, str(tmp_path / "device.json"), {}]):
        folder = tmp_path / str(number)
        monkeypatch.setenv("SPYRE_DUMP_DIR", str(folder))
        torch.compiler.reset()
        options = {"device": device}
        function = torch.compile(torch.exp, backend="spyre", options=options)
        x = torch.rand(512, 1024).half().to("spyre")
        assert torch.allclose(function(x).cpu(), x.cpu().exp(), rtol=2**-8)
        (ktir,) = folder.rglob("ktir.mlir")
        texts.append(ktir.read_text())
    assert texts[0] == texts[1]
    assert (
        "spyre_graph.device = {lxBytesPerCore = 262144 : i64, numCores = 8" in texts[0]
    )
    assert "grid = [8]" in texts[0] and "grid = [32]" in texts[2]


@pytest.mark.parametrize("mode", ["default", "max-autotune", "reduce-overhead"])
def test_modes_of_inductor_change_nothing(mode):
    x = torch.arange(3.0).to("spyre")
    f = torch.compile(lambda x: x + 1, backend="spyre", mode=mode)
    assert f(x).cpu().tolist() == [1, 2, 3]
    with pytest.raises(Exception, match="option mode: expected default or reference"):
        torch.compile(lambda x: x + 2, backend="spyre", mode="fastest")(x)

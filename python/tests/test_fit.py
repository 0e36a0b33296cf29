# SPDX-License-Identifier: Apache-2.0
"""benchmarks/fit.py: recovers the numbers of a device that is known."""

import json
import subprocess
import sys

import numpy as np
import pytest
from benchmark_modules import BENCHMARKS, load

fit, robust_fit = load("fit"), load("robust_fit")

NUMBERS = (
    robust_fit.Number("bandwidth", 1e9, 1e12),
    robust_fit.Number("rate", 1e9, 1e13),
    robust_fit.Number("setup", 1e-8, 1e-4, start=1e-6),
)
SPEC = {
    "bandwidth": {"value": 4e11, "unit": "bytes/s"},
    "rate": {"value": 2e12, "unit": "operations/s"},
    "setup": {"value": 0.0, "unit": "s"},
    "cores": {"value": 32, "unit": "cores"},
}
TRUE = {"bandwidth": 1.5e11, "rate": 3e11, "setup": 5e-6}
FAMILIES = ("pointwise", "reduction", "matmul", "softmax")


class FakeDevice:
    """A device that takes the longer of transfer and work, and its measurements."""

    def __init__(self, noise=0.0, wild=()):
        random = np.random.default_rng(3)
        count = 160
        self.bytes = 10 ** random.uniform(6, 9, count)
        self.operations = self.bytes * 10 ** random.uniform(-1, 1.5, count)
        measured = self.predict(TRUE) * np.exp(noise * random.standard_normal(count))
        for row in wild:
            measured[row] *= 9
        self.rows = [
            # Four rows of each shape.
            robust_fit.Row(f"r{i:03}", FAMILIES[i // 4 % 4], (i // 4,), measured[i])
            for i in range(count)
        ]

    def predict(self, numbers):
        values = {name: entry["value"] for name, entry in SPEC.items()} | numbers
        transfer = self.bytes / values["bandwidth"]
        work = self.operations / values["rate"]
        return (np.maximum(transfer, work) + values["setup"]) * 1e6

    def __call__(self, numbers, chosen):
        return self.predict(numbers)[list(chosen)]


def optimum(device, numbers=NUMBERS):
    problem = robust_fit.Problem(device.rows, numbers, device, fit.WEIGHTS)
    x, r, jacobian = problem.fit(problem.start(SPEC), 8)
    return problem, x, r, jacobian


def test_known_numbers_are_found_again():
    problem, x, r, _ = optimum(FakeDevice())
    assert problem.named(x) == pytest.approx(TRUE, rel=2e-3)
    assert np.abs(r).max() < 2e-3


def test_wild_rows_do_not_pull_the_numbers_away():
    problem, x, _, _ = optimum(FakeDevice(noise=0.05, wild=(3, 40, 41, 97)))
    assert problem.named(x) == pytest.approx(TRUE, rel=0.06)


def test_a_number_whose_term_is_nowhere_the_largest_is_woken():
    """No row changes with `rate` at its start, so no slope leads away from there."""
    device = FakeDevice()
    numbers = (
        *NUMBERS[:1],
        robust_fit.Number("rate", 1e9, 1e20, start=1e19),
        NUMBERS[2],
    )
    problem = robust_fit.Problem(device.rows, numbers, device, fit.WEIGHTS)
    start = problem.start({**SPEC, "rate": {"value": 0.0}})
    assert start[1] == pytest.approx(np.log(1e19))
    x, _, _ = problem.fit(start, 12)
    assert problem.named(x) == pytest.approx(TRUE, rel=2e-3)


def test_numbers_stay_within_their_bounds():
    numbers = (robust_fit.Number("bandwidth", 2e11, 1e12), *NUMBERS[1:])
    problem, x, r, jacobian = optimum(FakeDevice(), numbers)
    assert problem.named(x)["bandwidth"] == 2e11
    bounds = robust_fit.bootstrap(problem, x, r, jacobian)
    assert bounds[0, 0] >= 2e11 * 0.9999


def test_a_start_outside_the_bounds_is_their_middle():
    problem = robust_fit.Problem(
        FakeDevice().rows, [robust_fit.Number("setup", 1e-8, 1e-4)], None, fit.WEIGHTS
    )
    assert np.exp(problem.start(SPEC)) == pytest.approx([1e-6])


def test_box_minimum_is_the_minimum_in_the_box():
    """Against a search of all ways to hold numbers at bounds."""
    random = np.random.default_rng(1)
    for _ in range(50):
        half = random.standard_normal((3, 3))
        matrix, vector = half @ half.T + 0.1 * np.eye(3), random.standard_normal(3)
        low, high = -random.uniform(0, 1, 3), random.uniform(0, 1, 3)
        found = robust_fit.box_minimum(matrix, vector, low, high)
        assert (found >= low).all() and (found <= high).all()
        grid = np.meshgrid(
            *(np.linspace(*ends, 21) for ends in zip(low, high, strict=True))
        )
        points = np.stack([axis.ravel() for axis in grid])
        values = (points * (matrix @ points)).sum(axis=0) / 2 + vector @ points
        assert found @ matrix @ found / 2 + vector @ found <= values.min() + 1e-12


def test_families_weigh_the_same_however_many_rows_they_have():
    rows = [
        robust_fit.Row(f"r{i}", "bmm" if i < 3 else "matmul", i, 1.0) for i in range(50)
    ]
    weights = robust_fit.row_weights(rows, fit.WEIGHTS, np.ones(50))
    assert weights[:3].sum() == pytest.approx(fit.WEIGHTS["bmm"])
    assert weights[3:].sum() == pytest.approx(fit.WEIGHTS["matmul"])
    weights = robust_fit.row_weights(
        rows, fit.WEIGHTS, np.array([0.0, 0, 2] + [0] * 47)
    )
    assert weights.tolist() == [0, 0, fit.WEIGHTS["bmm"]] + [0] * 47


def test_folds_keep_shapes_together_and_ignore_the_order_of_rows():
    rows = FakeDevice().rows
    folds = robust_fit.folds_of(rows, 10)
    assert set(folds) == set(range(10))
    by_shape = {}
    for row, fold in zip(rows, folds, strict=True):
        assert by_shape.setdefault(row.shape, fold) == fold
    assert (robust_fit.folds_of(rows[::-1], 10)[::-1] == folds).all()


@pytest.mark.parametrize("exact", [False, True])
def test_left_out_rows_do_not_see_their_own_measurements(exact):
    """Rows of one shape that take 9 times as long do not change their prediction."""
    shape = [i for i in range(160) if i // 4 == 5]
    found = []
    for wild in ((), shape):
        device = FakeDevice(noise=0.05, wild=wild)
        problem, x, r, jacobian = optimum(device)
        groups = robust_fit.folds_of(device.rows, 10)
        out = robust_fit.left_out(problem, x, r, jacobian, groups, exact)
        assert np.isfinite(out).all()
        found.append((out + problem.log_measured)[shape])
    assert found[1] == pytest.approx(found[0], abs=0.02)


def test_intervals_of_numbers_hold_the_truth_and_name_rows():
    device = FakeDevice(noise=0.1)
    problem, x, r, jacobian = optimum(device)
    low, high = robust_fit.bootstrap(problem, x, r, jacobian)
    for value, least, most in zip(TRUE.values(), low, high, strict=True):
        assert least < value < most < 2 * least
    told = robust_fit.identifying_rows(problem, r, jacobian)
    work_bound = device.operations / TRUE["rate"] > device.bytes / TRUE["bandwidth"]
    assert all(work_bound[int(row[1:])] for row, _ in told[1])
    for shares in told:
        assert [s for _, s in shares] == sorted((s for _, s in shares), reverse=True)


def test_every_fit_is_the_same():
    found = []
    for _ in range(2):
        problem, x, r, jacobian = optimum(FakeDevice(noise=0.1))
        bounds = robust_fit.bootstrap(problem, x, r, jacobian)
        found.append((x.tolist(), r.tolist(), bounds.tolist()))
    assert found[0] == found[1]


def test_coverage_is_that_of_rows_the_percentiles_have_not_seen():
    residuals = np.random.default_rng(2).standard_normal(4000)
    groups = np.arange(4000) % 10
    assert robust_fit.coverage(residuals, groups) == pytest.approx(0.8, abs=0.01)
    # One group of ten is off by far: none of it is inside. It holds the ninth of what
    # the other groups see, all beyond their 10th percentile; of 3600 rows 360 lie above
    # their 90th, which are so many of the other 3200.
    residuals[groups == 0] += 100
    share = robust_fit.coverage(residuals, groups)
    assert share == pytest.approx(0.9 * (1 - 360 / 3200), abs=0.01)
    assert np.isnan(robust_fit.coverage(residuals, np.zeros(4000)))


def test_rows_that_are_not_judged_only_widen_the_percentiles():
    random = np.random.default_rng(3)
    residuals = np.concatenate([random.standard_normal(7), random.standard_normal(400)])
    judged = np.arange(407) < 7
    groups = np.arange(407) % 10
    inside = np.abs(residuals[judged]) < 1.28  # The normal distribution's tenths.
    assert robust_fit.coverage(residuals, groups, judged) == pytest.approx(
        inside.mean()
    )
    residuals[judged] = 0
    assert robust_fit.coverage(residuals, groups, judged) == 1
    residuals[judged] = [100, 0, 0, 0, 0, 0, -100]
    assert robust_fit.coverage(residuals, groups, judged) == pytest.approx(5 / 7)


def test_few_rows_are_covered_as_often_as_many():
    random = np.random.default_rng(5)
    shares = [
        robust_fit.coverage(random.standard_normal(20), np.arange(20) % 10)
        for _ in range(400)
    ]
    assert np.mean(shares) == pytest.approx(0.8, abs=0.015)


def test_percentiles_are_of_measured_over_predicted():
    rows = [robust_fit.Row(f"r{i}", "softmax", i, 1.0) for i in range(99)]
    # Predicted is 1 to 99 percent of measured.
    found = fit.intervals(rows, np.log(np.arange(1, 100) / 100))
    assert found == {"softmax": [1.111, 10.0]}


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (robust_fit.Number("speed", 1, 2), "the device has no number speed"),
        (robust_fit.Number("cores", 1, 2), "cores is not a real number"),
        (robust_fit.Number("rate", 0, 2), "rate: bounds must be positive and ascend"),
        (robust_fit.Number("rate", 2, 1), "rate: bounds must be positive and ascend"),
        (robust_fit.Number("bandwidth", 1, 2), "bandwidth occurs twice"),
    ],
)
def test_numbers_that_can_not_be_fitted_are_errors(number, message):
    with pytest.raises(robust_fit.FitError, match=message):
        fit.check_numbers([NUMBERS[0], number], SPEC)
    fit.check_numbers(NUMBERS, SPEC)


def run(*arguments):
    command = [sys.executable, str(BENCHMARKS / "fit.py"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_an_unknown_number_on_the_command_line_is_an_error():
    done = run("--numbers", "speed")
    assert (done.returncode, done.stderr) == (2, "error: not in the list: speed\n")


def test_the_timing_engine_is_fitted_to_what_it_predicted(tmp_path):
    """Measurements that the engine itself made: their bandwidth is found again."""
    rows = json.loads((BENCHMARKS / "card" / "measurements.json").read_text())
    rows = [row for row in rows if row["id"] in ("m00001", "m00019", "m00294")]
    data, device = tmp_path / "rows.json", tmp_path / "device.json"
    data.write_text(json.dumps(rows))
    device.write_text('{"effectiveMemoryBytesPerSecond": 1e11}')
    keep = ("--data", data, "--keep", tmp_path)
    intervals = tmp_path / "intervals.json"
    given = ("--evaluate-only", "--device", device, "--intervals-out", intervals)
    done = run(*keep, *given)
    assert done.returncode == 0, done.stderr
    worst = done.stdout.split("worst rows")[1].split("\n\n")[0].splitlines()[1:]
    ratios = {line.split()[0]: float(line.split()[-1]) for line in worst}
    for row in rows:
        row["value_us"] *= ratios[row["id"]]
    data.write_text(json.dumps(rows))
    fitted = tmp_path / "fitted.json"
    number = "effectiveMemoryBytesPerSecond"
    done = run(*keep, "--numbers", number, "--device-out", fitted, "--exact-folds")
    assert done.returncode == 0, done.stderr
    assert json.loads(fitted.read_text())[number] == pytest.approx(1e11, rel=2e-3)
    assert "3 rows; 0 do not count" in done.stdout


def test_rows_together_are_predicted_as_each_by_itself(tmp_path):
    """Kernels of several rows in one program, one of them in a loop of tiles.

    Two tell the share of LX that they were planned for.
    """
    fidelity = load("fidelity")
    measurements = fidelity.measurements
    chosen = ("m00001", "m00273", "m00192", "m00294", "m00366", "m00554", "m01107")
    rows = json.loads((BENCHMARKS / "card" / "measurements.json").read_text())
    data = tmp_path / "rows.json"
    data.write_text(json.dumps([row for row in rows if row["id"] in chosen]))
    engine = fit.Engine(data, tmp_path, None)
    assert engine.together == set(chosen)
    numbers = {"effectiveMemoryBytesPerSecond": 9e10, "clockHertz": 7e8}
    every = range(len(chosen))
    found = engine(numbers, every)
    assert (tmp_path / "merged0.mlir").exists()
    assert found == pytest.approx(engine(numbers, every, apart=True), rel=1e-9)
    device = tmp_path / "device.json"
    assert json.loads(device.read_text()) == numbers
    alone = fidelity.predict_all(measurements.read(data), tmp_path, device)
    assert found == pytest.approx([p.microseconds for p in alone], rel=1e-9)


def test_a_text_without_main_is_not_merged():
    with pytest.raises(ValueError, match="not a module with @main"):
        load("merged").Part.of("p0", "module {\n}\n")


def test_columns_of_the_table_are_apart():
    rows = [robust_fit.Row(f"r{i}", "softmax", i, 1.0) for i in range(20)]
    columns = {"before": np.zeros(20), "shape out (linear)": np.full(20, 9.0)}
    header, values = fit.family_table(rows, np.arange(20) % 10, columns)[1:3]
    assert header.split() == ["family", "rows", "before", "shape", "out", "(linear)"]
    start = header.index("shape out")
    assert values[:start].split() == ["softmax", "20", "1.000", "1.000"]

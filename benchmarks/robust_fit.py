# SPDX-License-Identifier: Apache-2.0
"""Numbers of a model by robust least squares, and how far to trust them.

fit.py says which numbers, which rows and what predicts them. Gauss-Newton in logarithms
with a robust loss; refits on the linearised model for rows that are left out and for
resampled shapes. Every run is the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

#: From here on a residual's logarithm counts by its size instead of its square.
SCALE = 0.1
#: Change of a number's logarithm in a difference quotient. Large, since predictions
#: are maxima of several terms: what is about to become the largest should show.
DIFFERENCE = 0.03
#: The furthest that a step or a refit takes the logarithm of a number.
REACH = 1.0
#: Pull of a refit to the optimum, as a share of the mean information per number: keeps
#: a number in place that the remaining rows say nothing of.
PULL = 1e-4
#: Slopes below this are none.
DEAD = 1e-6
#: A row that had no slope for a number is asked again after a number moved that far.
NEAR = 0.3
#: The fit ends when an iteration lessens the loss by a smaller share.
ENOUGH = 5e-3
#: Steps with one Jacobian.
TRIALS = 4
RESAMPLES = 200


class FitError(ValueError):
    """Numbers or rows that can't be fitted."""


@dataclass(frozen=True)
class Row:
    id: str
    family: str
    #: Rows of equal shape are left out together.
    shape: Any
    microseconds: float
    text: str = ""


class Number(NamedTuple):
    """A number to fit, by its name in DeviceSpec, and where it has to lie.

    The fit is in logarithms: no bound may be 0. It starts from the device's own number;
    from `start`, or else the middle, if that is outside the bounds, as a 0 is.
    """

    name: str
    lower: float
    upper: float
    start: float | None = None


#: Microseconds of the rows with these indices for the device with these numbers.
Predictor = Callable[[dict[str, float], Sequence[int]], np.ndarray]


# The weighted robust least squares.


def row_weights(
    rows: Sequence[Row], importance: dict[str, float], counts: np.ndarray
) -> np.ndarray:
    """Weights that sum to a family's importance, with so many copies of each row."""
    families = np.array([row.family for row in rows])
    weights = np.zeros(len(rows))
    for family in sorted(set(families)):
        of_family = families == family
        if total := counts[of_family].sum():
            weights[of_family] = importance[family] * counts[of_family] / total
    return weights


def loss(weights: np.ndarray, residuals: np.ndarray) -> float:
    """Soft L1: a square up to SCALE, linear beyond."""
    roots = np.sqrt(1 + (residuals / SCALE) ** 2)
    return float(np.sum(weights * 2 * SCALE**2 * (roots - 1)))


def reweighted(weights: np.ndarray, residuals: np.ndarray) -> np.ndarray:
    """Weights of the squares that have the gradient of the loss."""
    return weights / np.sqrt(1 + (residuals / SCALE) ** 2)


def box_minimum(
    matrix: np.ndarray, vector: np.ndarray, low: np.ndarray, high: np.ndarray
) -> np.ndarray:
    """The x between low and high that minimises x matrix x / 2 + vector x.

    Holds what would leave the box at its bound, and lets go what would come back.
    """
    x = np.zeros(len(vector))
    free = np.ones(len(vector), bool)
    for _ in range(8 * len(vector) + 8):
        rest = vector[free] + matrix[np.ix_(free, ~free)] @ x[~free]
        x[free] = -np.linalg.solve(matrix[np.ix_(free, free)], rest)
        beyond = np.where(free, np.maximum(x - high, low - x), 0.0)
        if beyond.max() > 0:
            worst = int(beyond.argmax())
            x[worst] = np.clip(x[worst], low[worst], high[worst])
            free[worst] = False
            continue
        slope = matrix @ x + vector
        inward = np.where(x >= high, slope, -slope) * ~free
        if inward.max() <= 1e-12 * (1 + abs(vector).max()):
            break
        free[int(inward.argmax())] = True
    return np.clip(x, low, high)


def step(
    jacobian: np.ndarray,
    residuals: np.ndarray,
    weights: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    damping: float,
) -> np.ndarray:
    """A damped Gauss-Newton step within bounds."""
    weighted = jacobian.T * reweighted(weights, residuals)
    matrix = weighted @ jacobian
    mean = float(np.trace(matrix)) / len(matrix)
    matrix = matrix + np.eye(len(matrix)) * (damping * mean + 1e-15)
    return box_minimum(matrix, weighted @ residuals, low, high)


class Problem:
    """Rows, numbers and the predictor that connects them."""

    def __init__(
        self,
        rows: Sequence[Row],
        numbers: Sequence[Number],
        predictor: Predictor,
        importance: dict[str, float],
        say: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.rows, self.numbers, self.predictor = rows, numbers, predictor
        self.importance = importance
        self.say = say
        self.log_measured = np.log([row.microseconds for row in rows])
        self.weights = self.weighted(np.ones(len(rows)))
        self.low = np.log([number.lower for number in numbers])
        self.high = np.log([number.upper for number in numbers])
        self.predictions = 0

    def weighted(self, counts: np.ndarray) -> np.ndarray:
        return row_weights(self.rows, self.importance, counts)

    def start(self, spec: dict[str, Any]) -> np.ndarray:
        found = []
        for number in self.numbers:
            value = spec[number.name]["value"]
            if not number.lower <= value <= number.upper:
                value = number.start or math.sqrt(number.lower * number.upper)
            found.append(math.log(value))
        return np.array(found)

    def named(self, x: np.ndarray) -> dict[str, float]:
        """The numbers at x, to as many digits as a file of the device gets."""
        values = np.exp(x)
        return {
            n.name: float(f"{v:.5g}") for n, v in zip(self.numbers, values, strict=True)
        }

    def residuals(
        self, x: np.ndarray, chosen: Sequence[int] | None = None
    ) -> np.ndarray:
        """log(predicted / measured) of the chosen rows, or of all."""
        indices = range(len(self.rows)) if chosen is None else chosen
        self.predictions += len(indices)
        predicted = self.predictor(self.named(x), indices)
        return np.log(predicted) - self.log_measured[list(indices)]

    def jacobian(
        self, x: np.ndarray, r: np.ndarray, forward: bool, known: np.ndarray | None
    ) -> np.ndarray:
        """Difference quotients. Only rows are predicted that `known` has slopes of."""
        found = np.zeros((len(r), len(x)))
        for j in range(len(x)):
            difference = DIFFERENCE if forward else -DIFFERENCE
            if not self.low[j] <= x[j] + difference <= self.high[j]:
                difference = -difference
            moved = x.copy()
            moved[j] += difference
            chosen = np.arange(len(r))
            if known is not None:
                chosen = np.flatnonzero(np.abs(known[:, j]) > DEAD)
            if len(chosen):
                there = self.residuals(moved, chosen.tolist())
                found[chosen, j] = (there - r[chosen]) / difference
        return found

    def wake(
        self, x: np.ndarray, r: np.ndarray, jacobian: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Moves numbers that change no row here to where they lessen the loss.

        The term of such a number is not the largest anywhere: no slope leads back.
        """
        for j in np.flatnonzero(np.abs(jacobian).max(axis=0) < DEAD):
            for value in np.linspace(self.low[j], self.high[j], 7)[1:-1]:
                moved = x.copy()
                moved[j] = value
                there = self.residuals(moved)
                if loss(self.weights, there) < loss(self.weights, r) - 1e-9:
                    x, r = moved, there
        return x, r

    def descend(
        self, x: np.ndarray, r: np.ndarray, jacobian: np.ndarray, damping: float
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
        """A few steps with one Jacobian, which they improve."""
        for _ in range(TRIALS):
            low = np.maximum(self.low - x, -REACH)
            high = np.minimum(self.high - x, REACH)
            d = step(jacobian, r, self.weights, low, high, damping)
            if np.abs(d).max() < 1e-4:
                break
            there = self.residuals(x + d)
            # Broyden: what this step has shown of the slopes.
            error = there - r - jacobian @ d
            jacobian = jacobian + np.outer(error, d) / (d @ d)
            if loss(self.weights, there) < loss(self.weights, r):
                x, r = x + d, there
                damping = max(damping / 4, 1e-6)
            else:
                damping = min(damping * 6, 1e3)
        return x, r, jacobian, damping

    def fit(
        self, x: np.ndarray, iterations: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The optimum from x on: numbers, residuals and their Jacobian."""
        x = np.clip(x, self.low, self.high)
        r = self.residuals(x)
        damping, known = 1e-2, None
        for iteration in range(iterations):
            was, before = x, loss(self.weights, r)
            forward = iteration % 2 == 0
            jacobian = self.jacobian(x, r, forward, known)
            if known is None:
                awake, there = self.wake(x, r, jacobian)
                if awake is not x:
                    x, r = awake, there
                    jacobian = self.jacobian(x, r, forward, None)
            slopes = jacobian
            x, r, jacobian, damping = self.descend(x, r, jacobian, damping)
            now = loss(self.weights, r)
            self.say(
                f"iteration {iteration + 1}: loss {before:.5f} -> {now:.5f}, "
                f"{self.predictions} predictions"
            )
            # Far from here other terms may be the largest of a row.
            known = slopes if np.abs(x - was).max() < NEAR else None
            if known is not None and before - now < ENOUGH * before:
                break
        return x, r, jacobian

    def refit(
        self, x: np.ndarray, r: np.ndarray, jacobian: np.ndarray, weights: np.ndarray
    ) -> np.ndarray:
        """Where other weights move the numbers from x, with the linearised model."""
        low = np.maximum(self.low - x, -REACH)
        high = np.minimum(self.high - x, REACH)
        d = np.zeros(len(x))
        for _ in range(40):
            omega = reweighted(weights, r + jacobian @ d)
            weighted = jacobian.T * omega
            matrix = weighted @ jacobian
            pull = PULL * float(np.trace(matrix)) / len(matrix) + 1e-15
            matrix = matrix + np.eye(len(matrix)) * pull
            new = box_minimum(matrix, weighted @ r, low, high)
            if np.abs(new - d).max() < 1e-7:
                return new
            d = new
        return d


# How good the numbers are.


def folds_of(rows: Sequence[Row], count: int) -> np.ndarray:
    """The fold of each row: that of its shape."""
    shapes = sorted({row.shape for row in rows}, key=repr)
    fold = {shape: i % count for i, shape in enumerate(shapes)}
    return np.array([fold[row.shape] for row in rows])


def left_out(
    problem: Problem,
    x: np.ndarray,
    r: np.ndarray,
    jacobian: np.ndarray,
    groups: np.ndarray,
    exact: bool,
) -> np.ndarray:
    """Residuals of each group of rows with numbers that are fitted to the others."""
    found = np.full(len(r), np.nan)
    for group in sorted(set(groups.tolist())):
        out = groups == group
        weights = problem.weighted((~out).astype(float))
        d = problem.refit(x, r, jacobian, weights)
        if exact:
            found[out] = problem.residuals(x + d, np.flatnonzero(out).tolist())
        else:
            found[out] = (r + jacobian @ d)[out]
    return found


def bootstrap(
    problem: Problem, x: np.ndarray, r: np.ndarray, jacobian: np.ndarray
) -> np.ndarray:
    """The 5th and 95th percentile of each number over resampled shapes."""
    shapes = sorted({row.shape for row in problem.rows}, key=repr)
    place = {shape: i for i, shape in enumerate(shapes)}
    of_row = np.array([place[row.shape] for row in problem.rows])
    random = np.random.default_rng(0)
    found = []
    for _ in range(RESAMPLES):
        drawn = random.integers(len(shapes), size=len(shapes))
        counts = np.bincount(drawn, minlength=len(shapes))[of_row]
        weights = problem.weighted(counts.astype(float))
        found.append(np.exp(x + problem.refit(x, r, jacobian, weights)))
    return np.percentile(found, [5, 95], axis=0)


def identifying_rows(
    problem: Problem, r: np.ndarray, jacobian: np.ndarray, count: int = 5
) -> list[list[tuple[str, float]]]:
    """Per number the rows that say most of it, and their share of all that is said.

    That is of what a row says after the other numbers are adjusted to it.
    """
    scaled = jacobian * np.sqrt(reweighted(problem.weights, r))[:, None]
    found = []
    for j in range(scaled.shape[1]):
        others = np.delete(scaled, j, axis=1)
        fitted = others @ np.linalg.lstsq(others, scaled[:, j], rcond=1e-6)[0]
        shares = (scaled[:, j] - fitted) ** 2
        total = shares.sum()
        most = sorted(range(len(shares)), key=lambda i: (-shares[i], i))[:count]
        found.append(
            [(problem.rows[i].id, float(shares[i] / total)) for i in most if total]
            if np.abs(jacobian[:, j]).max() > DEAD
            else []
        )
    return found


def tenths(residuals: np.ndarray) -> tuple[float, float]:
    """The 10th and 90th percentile of measured / predicted, as logarithms.

    Weibull's, between which a further value falls with a chance of 80 % however few
    values there are; by numpy's usual rule 20 values would give 73 %.
    """
    low, high = np.percentile(-residuals, [10, 90], method="weibull")
    return float(low), float(high)


def coverage(
    residuals: np.ndarray, groups: np.ndarray, judged: np.ndarray | None = None
) -> float:
    """The share of rows between the percentiles of the other groups' rows.

    `judged` is a mask of the rows that count, all by default; the others only take
    part in the percentiles.
    """
    judged = np.ones(len(residuals), bool) if judged is None else judged
    inside = 0
    for group in sorted(set(groups[judged].tolist())):
        out = groups == group
        if out.all():
            return math.nan
        low, high = tenths(residuals[~out])
        values = -residuals[out & judged]
        inside += int(np.sum((values >= low) & (values <= high)))
    return inside / int(judged.sum())

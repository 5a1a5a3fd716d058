"""The judge: is one output where an honest implementation can put it?"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from oracle.formats import round_to, spacing
from oracle.operator import Expected
from refsim.conformance.neighbourhood import around
from refsim.conformance.verdicts import Element, Verdict

# The statistical tier: measured on honest kernels of twenty operators, whose rms stays at or below 1.
Z_LIMIT = 8.0
Z_MANY = 6.0
MANY_FRACTION = 1e-4
RMS_LIMIT = 2.5
RMS_ELEMENTS = 64


@dataclass(frozen=True)
class Judgement:
    """Verdict on one output.

    Attributes
    ----------
    margin : float
        Largest |got - value| / (bound + half a step of the output); 0 without elements.
    reach : float
        Largest share of a positive bound that was used, not counting half a step for the last rounding.
    strain : float
        How far into the statistical tier: over 1 is SUSPECT.
    """

    verdict: Verdict
    margin: float = 0.0
    reason: str = ""
    message: str = ""
    element: Element | None = None
    wrong: int = 0
    total: int = 0
    reach: float = 0.0
    strain: float = 0.0


class Judge:
    """Judges any number of candidates for one expected output.

    An element is accepted iff ``Q(value - bound) <= got <= Q(value + bound)``, Q being the rounding to the output's
    format. A NaN is accepted only where a NaN is expected, an infinity only with its sign. Elements without a finite
    bound are not judged.
    """

    def __init__(self, expected: Expected) -> None:
        self.expected = expected
        self.choice = expected.choice
        value, bound = np.asarray(expected.value, np.float64), np.asarray(expected.bound, np.float64)
        with np.errstate(all="ignore"):
            exact = (bound == 0) | ~np.isfinite(value)
            low = np.where(exact, value, np.nextafter(value - bound, -np.inf))
            high = np.where(exact, value, np.nextafter(value + bound, np.inf))
            self.low = round_to(low, expected.format)
            self.high = round_to(high, expected.format)
        self.value, self.bound = value, bound
        self.unjudged = ~np.isfinite(bound) & ~np.isnan(value)
        self.vacuous = self.unjudged | ((bound > np.abs(value)) & (self.low < 0) & (self.high > 0))

    @property
    def has_power(self) -> bool:
        """Whether the bound tells anything: finite everywhere, and below the value itself for half the elements."""
        if self.choice is not None:
            return True
        return not self.unjudged.any() and 2 * int(self.vacuous.sum()) <= self.value.size

    def refuses(self, candidate: np.ndarray[Any, Any]) -> bool:
        """Whether any element of a float64 candidate of the right shape lies outside."""
        return bool(self._outside(candidate).any())

    def judge(self, got: object) -> Judgement:
        """Verdict on what an implementation returned."""
        problem = self._form(got)
        if problem:
            return problem
        if self.choice is not None:
            return self._judge_choice(np.asarray(got))
        returned = np.asarray(got).astype(np.float64)
        outside = self._outside(returned)
        half_step = self._half_step(returned)
        ratio = self._ratio(returned, half_step)
        total = self.value.size
        margin = float(ratio.max(initial=0.0))
        if outside.any():
            return self._failure(returned, outside, ratio, margin)
        with np.errstate(all="ignore"):
            excess = np.maximum(np.abs(returned - self.value) - half_step, 0.0)
        z, count = self._deviations(excess)
        used = Judgement(Verdict.PASS, margin, total=total, reach=self._reach(excess), strain=_strain(z, count))
        if used.strain > 1.0:
            text, element = self._suspect(returned, z, count)
            return replace(used, verdict=Verdict.SUSPECT, reason="statistics", message=text, element=element)
        if not self.has_power:
            unjudged, vacuous = int(self.unjudged.sum()), int(self.vacuous.sum())
            text = (
                f"{self.expected.name}: the bound is infinite for {unjudged} and wider than the value for "
                f"{vacuous - unjudged} of {total} elements"
            )
            return replace(used, verdict=Verdict.INCONCLUSIVE, reason="bound", message=text)
        return used

    def well_formed(self, got: object) -> bool:
        """Whether what was returned is an array of the right shape and dtype."""
        return self._form(got) is None

    def _form(self, got: object) -> Judgement | None:
        """What is wrong with the type, the shape or the dtype."""
        name, number_format = self.expected.name, self.expected.format
        if not isinstance(got, np.ndarray | np.generic):
            kind = "None" if got is None else type(got).__name__
            return Judgement(Verdict.FAIL, np.inf, "outputs", f"{name}: returned {kind} in place of a NumPy array")
        array = np.asarray(got)
        if array.shape != self.value.shape:
            text = f"{name}: shape {array.shape} in place of {self.value.shape}"
            return Judgement(Verdict.FAIL, np.inf, "shape", text)
        if array.dtype != number_format.dtype:
            order = " in the other byte order" if array.dtype.name == number_format.name else ""
            text = f"{name}: dtype {array.dtype.name}{order} in place of {number_format.name}"
            return Judgement(Verdict.FAIL, np.inf, "dtype", text)
        return None

    def _judge_choice(self, got: np.ndarray[Any, Any]) -> Judgement:
        """Verdict on integers or codes of which several may be right."""
        assert self.choice is not None
        outside = self.choice.wrong(got)
        wrong, total = int(outside.sum()), got.size
        if not wrong:
            return Judgement(Verdict.PASS, total=total)
        at = np.unravel_index(int(outside.argmax()), outside.shape)
        index = tuple(int(axis) for axis in at)
        want, was = float(self.value[at]), float(got[at])
        near = around(index, got.astype(np.float64), self.value, self.value, outside)
        element = Element(self.expected.name, index, want, want, was, "choice", near)
        where = f"[{', '.join(map(str, index))}]" if index else ""
        text = (
            f"{self.expected.name}{where} = {was:.17g}, which no honest implementation can choose; "
            f"the definition has {want:.17g} ({wrong} of {total} elements wrong; rule: choice)"
        )
        return Judgement(Verdict.FAIL, np.inf, "choice", text, element, wrong, total)

    def _outside(self, returned: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        if self.choice is not None:
            return self.choice.wrong(returned)
        inside = (self.low <= returned) & (returned <= self.high)
        inside |= np.isnan(self.value) & np.isnan(returned)
        return ~(inside | self.unjudged)

    def _half_step(self, returned: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """What the last rounding may add: half of the output's spacing at the larger of value and answer."""
        size = np.fmax(np.abs(self.value), np.abs(returned))
        return spacing(np.where(np.isfinite(size), size, 0.0), self.expected.format) / 2

    def _ratio(self, returned: np.ndarray[Any, Any], half_step: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Error over allowance of each judged element; infinite for a NaN or an infinity out of place."""
        with np.errstate(all="ignore"):
            error = np.abs(returned - self.value)
            ratio = np.where(error == 0, 0.0, error / (self.bound + half_step))
        outside = self._outside(returned)
        ratio = np.where(np.isfinite(ratio), ratio, np.where(outside, np.inf, 0.0))
        ratio = np.where(outside, ratio, np.minimum(ratio, 1.0))  # the interval is widened by a float64 step
        return np.where(self.unjudged, 0.0, ratio)

    def _reach(self, excess: np.ndarray[Any, Any]) -> float:
        """The largest share of a positive bound that errors beyond the last rounding take."""
        with np.errstate(all="ignore"):
            share = np.where(np.isfinite(excess) & (self.bound > 0) & ~self.unjudged, excess / self.bound, 0.0)
        return min(float(share.max(initial=0.0)), 1.0)

    def _deviations(self, excess: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], int]:
        """Errors beyond the last rounding in standard deviations, and how many elements have a standard deviation."""
        sigma = np.asarray(self.expected.sigma, np.float64)
        used = np.isfinite(excess) & np.isfinite(sigma) & (sigma > 0) & ~self.unjudged
        with np.errstate(all="ignore"):
            return np.where(used, excess / np.where(used, sigma, 1.0), 0.0), int(used.sum())

    def _suspect(self, returned: np.ndarray[Any, Any], z: np.ndarray[Any, Any], count: int) -> tuple[str, Element]:
        """The statistical tier's message and worst element."""
        largest, many, rms = float(z.max()), int((z > Z_MANY).sum()), _rms(z, count)
        nowhere = np.zeros(z.shape, np.bool_)
        element = self._element(returned, nowhere, np.unravel_index(int(z.argmax()), z.shape), "sigma")
        text = (
            f"{self.expected.name}: inside the guaranteed bound, but up to {largest:.3g} standard deviations of "
            f"independent roundings off ({many} of {count} elements over {Z_MANY:g}, rms {rms:.3g}); "
            "precision is lost somewhere before the last rounding"
        )
        return text, element

    def _failure(
        self,
        returned: np.ndarray[Any, Any],
        outside: np.ndarray[Any, Any],
        ratio: np.ndarray[Any, Any],
        margin: float,
    ) -> Judgement:
        worst = np.unravel_index(int(np.where(outside, ratio, -1.0).argmax()), outside.shape)
        value, got = self.value[worst], returned[worst]
        if np.isnan(value) or np.isnan(got):
            rule, reason = "nan", "nan"
        elif np.isinf(value) or np.isinf(got):
            rule, reason = "infinity", "value"
        elif self.low[worst] == self.high[worst]:
            rule, reason = "exact", "exact value"
        else:
            rule, reason = "bound", "value"
        element = self._element(returned, outside, worst, rule)
        wrong, total = int(outside.sum()), outside.size
        where = f"[{', '.join(map(str, element.index))}]" if element.index else ""
        accepted = (
            f"only {element.low!r} is accepted"
            if element.low == element.high or np.isnan(element.low)
            else f"{element.low!r} … {element.high!r} is accepted"
        )
        counted = f"{wrong} of {total} elements outside; rule: {rule}"
        text = f"{element.output}{where} = {element.got!r}, {accepted} ({counted})"
        return Judgement(Verdict.FAIL, margin, reason, text, element, wrong, total)

    def _element(self, returned: np.ndarray[Any, Any], outside: np.ndarray[Any, Any], at: Any, rule: str) -> Element:
        index = tuple(int(axis) for axis in at)
        low, high, got = float(self.low[index]), float(self.high[index]), float(returned[index])
        near = around(index, returned, self.low, self.high, outside)
        return Element(self.expected.name, index, low, high, got, rule, near)


def _rms(z: np.ndarray[Any, Any], count: int) -> float:
    return float(np.sqrt((z * z).sum() / count))


def _strain(z: np.ndarray[Any, Any], count: int) -> float:
    """The largest of what the statistical tier limits, each as a share of its limit: one element, several, the rms."""
    if not count:
        return 0.0
    strain = float(z.max()) / Z_LIMIT
    several = max(2, math.ceil(MANY_FRACTION * count))
    if z.size >= several:
        strain = max(strain, float(np.partition(z, -several, axis=None)[-several]) / Z_MANY)
    return max(strain, _rms(z, count) / RMS_LIMIT) if count >= RMS_ELEMENTS else strain

"""Variants of the matrix product with an epilogue."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from oracle.formats import round_to
from oracle.signature import Array
from oracle.variants.activation import logistic, logistic_by_exp2, phi, phi_other
from oracle.variants.arithmetic import product, stored, wide
from oracle.variants.gemm import BROKEN, HONEST, WRONG, Product
from oracle.variants.variant import control, mutant

Activate = Callable[[Array, str], Array]


def activated(x: Any, activation: str) -> Any:
    """The activation in the compute type."""
    real = x.dtype.type
    if activation == "relu":
        return np.maximum(x, real(0))
    if activation == "silu":
        return x * logistic(x)
    if activation in ("gelu", "gelu_tanh"):
        return x * phi(x, "tanh" if activation == "gelu_tanh" else "none")
    return x


def activated_otherwise(x: Any, activation: str) -> Any:
    """The same by other forms: exp2, erf of a quotient, the sigmoid for tanh."""
    if activation == "silu":
        return x * logistic_by_exp2(x)
    if activation in ("gelu", "gelu_tanh"):
        return phi_other(x, "tanh" if activation == "gelu_tanh" else "none") * x
    return activated(x, activation)


def _gelus_exchanged(x: Any, activation: str) -> Any:
    return activated(x, {"gelu": "gelu_tanh", "gelu_tanh": "gelu"}.get(activation, activation))


def _sigmoid_gelu(x: Any, activation: str) -> Any:
    if activation in ("gelu", "gelu_tanh"):
        return x * logistic(x.dtype.type(1.702) * x)
    return activated(x, activation)


def _nan_dropped(x: Any, activation: str) -> Any:
    return np.fmax(x, x.dtype.type(0)) if activation == "relu" else activated(x, activation)


def _not_activated(x: Any, activation: str) -> Any:
    return x


@dataclass(frozen=True)
class Epilogue:
    """One way through the epilogue.

    Attributes
    ----------
    form : function
        The product in the compute type.
    alpha : str
        ``after`` the sum, ``folded`` into a, ``none``, or on ``everything`` that is added.
    added : str
        ``c_first``, ``bias_first``, ``together``; ``no_c``, ``no_bias``, ``c_unscaled``, ``always_read``, ``c_turned``.
    activate : function
        The activation.
    place : str
        Whether the activation comes ``last`` or ``early``, before what is added.
    rounded : bool
        Whether the sum is rounded to the output's dtype before the activation.
    """

    form: Product = product
    alpha: str = "after"
    added: str = "c_first"
    activate: Activate = activated
    place: str = "last"
    rounded: bool = False


def _gemm(style: Epilogue, doc: str) -> Callable[..., Array]:
    def gemm_epilogue(
        a: Array,
        b: Array,
        c: Array | None,
        bias: Array | None,
        *,
        alpha: float,
        beta: float,
        activation: str,
        transpose_a: bool,
        transpose_b: bool,
    ) -> Array:
        left, right = wide(a.T if transpose_a else a), wide(b.T if transpose_b else b)
        real = left.dtype.type
        first = left * real(alpha) if style.alpha == "folded" else left
        total: Any = style.form(first, right)
        if style.alpha == "after":
            total = total * real(alpha)
        if style.place == "early":
            total = style.activate(total, activation)
        more_c: Any = real(0)
        if c is not None and (beta or style.added == "always_read") and style.added != "no_c":
            more_c = wide(c) * (real(1) if style.added == "c_unscaled" else real(beta))
            if style.added == "c_turned":
                more_c = more_c[::-1]
        more_bias: Any = real(0) if bias is None or style.added == "no_bias" else wide(bias)
        if style.added == "bias_first":
            total = (total + more_bias) + more_c
        elif style.added == "together":
            total = total + (more_c + more_bias)
        else:
            total = (total + more_c) + more_bias
        if style.alpha == "everything":
            total = total * real(alpha)
        if style.rounded:
            total = round_to(total, a.dtype.name).astype(left.dtype)
        return stored(total if style.place == "early" else style.activate(total, activation), a)

    gemm_epilogue.__doc__ = doc
    return gemm_epilogue


for _name, _style, _doc in (
    ("after_the_sum", Epilogue(), "alpha after the sum, then c, then the bias."),
    ("alpha_folded", Epilogue(alpha="folded"), "alpha is multiplied into a."),
    ("tree", Epilogue(HONEST["order_tree"][0], added="bias_first"), "The terms as a tree; the bias before c."),
    ("tiles", Epilogue(HONEST["order_tiles"][0], added="together"), "Tiles of k; c and the bias are added first."),
    ("fma", Epilogue(HONEST["fma"][0], activate=activated_otherwise), "Fused additions; other forms of activations."),
    ("blas", Epilogue(HONEST["blas"][0], alpha="folded", activate=activated_otherwise), "The installed BLAS."),
    ("split_k", Epilogue(HONEST["split_k"][0]), "Two halves of k are summed apart."),
):
    control("gemm_epilogue", name=_name)(_gemm(_style, _doc))

for _name, _style, _doc in (
    *((name, Epilogue(WRONG[name][0]), WRONG[name][1]) for name in ("last_k_missed", "tail_missed", "stale_row")),
    *((name, Epilogue(WRONG[name][0]), WRONG[name][1]) for name in ("narrow_accumulator", "narrow_partials")),
    ("alpha_left_out", Epilogue(alpha="none"), "alpha is left out."),
    ("alpha_on_everything", Epilogue(alpha="everything"), "alpha is multiplied to c and to the bias too."),
    ("c_left_out", Epilogue(added="no_c"), "c is left out."),
    ("bias_left_out", Epilogue(added="no_bias"), "The bias is left out."),
    ("beta_left_out", Epilogue(added="c_unscaled"), "c is added without beta."),
    ("c_always_read", Epilogue(added="always_read"), "c is read where beta is 0, and its NaN reaches the result."),
    ("c_upside_down", Epilogue(added="c_turned"), "c's rows are read from the last to the first."),
    ("activation_left_out", Epilogue(activate=_not_activated), "There is no activation."),
    ("activation_early", Epilogue(place="early"), "The activation comes before c and the bias."),
    ("gelus_exchanged", Epilogue(activate=_gelus_exchanged), "GELU by tanh and by erf are exchanged."),
    ("gelu_by_sigmoid", Epilogue(activate=_sigmoid_gelu), "GELU is x · sigmoid(1.702 x)."),
    ("nan_dropped", Epilogue(activate=_nan_dropped), "relu makes 0 of a NaN."),
):
    mutant("gemm_epilogue", name=_name)(_gemm(_style, _doc))
mutant("gemm_epilogue", name="rounded_before_activation", dtypes=("float16", "bfloat16"))(
    _gemm(Epilogue(rounded=True), "The sum is rounded to the output's dtype before the activation.")
)
for _name in ("order_by_others",):
    _form, _doc, _relation = BROKEN[_name]
    mutant("gemm_epilogue", name=_name, relation=_relation, dtypes=("float32",))(_gemm(Epilogue(_form), _doc))

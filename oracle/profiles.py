"""Profiles: sets of operators that a port can claim, as conformance suites have them."""

from __future__ import annotations

PROFILES: dict[str, tuple[str, ...]] = {
    "core": ("sum", "softmax", "matmul", "rmsnorm", "rope", "attention"),
<<<<<<< HEAD
    "dense-llm": ("batched_matmul",),
    "moe-llm": ("grouped_matmul",),
    "quantised": ("quantise", "quantise_static"),
=======
    "dense-llm": ("attention", "attention_varlen", "flash_attention"),
>>>>>>> 21b7b4a (flash_attention with window, soft cap, ALiBi, bias and sinks, and attention of packed sequences)
}
"""Operators by profile."""

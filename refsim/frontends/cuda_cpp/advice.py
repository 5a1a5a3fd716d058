"""What to do about an error of clang that is about refsim, or that speaks of what the author never wrote."""

from __future__ import annotations

import re

MOST_NAMES = 8
HOST = "the source of a kernel holds device code only; do this on the host, in Python"
TEXTURE = "textures and surfaces are not supported by refsim: pass a pointer and compute the address"

# what clang says, and what is meant; {0} is the first group
TABLE: tuple[tuple[str, str], ...] = (
    (r"unknown type name '(?:cudaTextureObject_t|cudaSurfaceObject_t|hipTextureObject_t)'", TEXTURE),
    (r"no template named '(?:texture|surface)'", TEXTURE),
    (r"use of undeclared identifier '(?:tex[123]D\w*|tex2Dgather|surf[123]D\w*|texCubemap\w*)'", TEXTURE),
    (r"requires relocatable device code", "a kernel cannot launch kernels in refsim: launch from the host"),
    (r"use of undeclared identifier '(?:cudaLaunchKernel|__cudaPushCallConfiguration)'", HOST),
    (r"(?:undeclared identifier|unknown type name) '(?:cuda|hip)(?:Malloc\w*|Mem\w+|Free\w*|Device\w+|Stream\w*|"
     r"Event\w*|Get\w+|Error_t|Func\w+)'", HOST),
    (r"'((?:cub|thrust|cute|cutlass)/[^']*)' file not found",
     "{0} is not supported by refsim: write that part of the kernel out, or judge the kernel on a GPU"),
    (r"'(cuda/[^']*|cooperative_groups/[^']*)' file not found", "refsim has no header <{0}>"),
    (r"'([^']*)' file not found",
     "the folder of {0} can be named by an option, -I/the/folder; without one, refsim's own headers are all there is"),
)  # fmt: skip
NO_KERNEL = re.compile(r"<name expressions>:\d+:\d+: error: (?:use of undeclared identifier|no member named) '(\w+)'")
TEMPLATE = re.compile(r"variable '(refsim_name_\d+)' with type .* has incompatible initializer of type '<overloaded")
ATTRIBUTE = re.compile(r"__attribute__\(\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)\)")
KERNEL = re.compile(r"\0[^({;]*?\b(\w+)\s*\(")


def advice(errors: str, source: str) -> str:
    """What clang's errors mean for the author of a kernel; empty if they speak for themselves.

    Parameters
    ----------
    errors
        What clang printed.
    source
        What clang read.
    """
    for pattern, meaning in TABLE:
        found = re.search(pattern, errors)
        if found:
            return meaning.format(*found.groups())
    first = next((line for line in errors.splitlines() if " error: " in line), "")
    missing = NO_KERNEL.match(first)  # where it is the only error: others may hide a kernel
    if missing:
        return f"the source has nothing called {missing[1]!r}; {_kernels(source)}"
    template = TEMPLATE.search(errors)
    if template:
        name = re.search(rf"{template[1]} = &(.*);", source)
        known = name[1] if name else "kernel"
        return f"{known!r} is a template or has overloads: name an instantiation, such as '{known}<float>'"
    return ""


def _kernels(source: str) -> str:
    """The kernels that a source defines."""
    marked = ATTRIBUTE.sub(" ", re.sub(r"__attribute__\(\(global\)\)|__global__", "\0", source))
    names = list(dict.fromkeys(KERNEL.findall(marked)))
    if not names:
        return "it defines no kernels (__global__)"
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return f"its kernels are {', '.join(names[:MOST_NAMES])}{more}"


__all__ = ["advice"]

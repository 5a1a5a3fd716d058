"""Compiler options as NVRTC and hipRTC take them."""

from __future__ import annotations

from dataclasses import dataclass

from refsim.devices import Device

STANDARDS = ("c++11", "c++14", "c++17", "c++20", "c++23")
IGNORED = frozenset(
    {
        "-dc", "--device-debug", "-G", "--generate-line-info", "-lineinfo", "-rdc", "--relocatable-device-code",
        "--std", "-w", "--disable-warnings", "--restrict", "-restrict", "--extra-device-vectorization",
        "--expt-relaxed-constexpr", "-expt-relaxed-constexpr", "--expt-extended-lambda", "--extended-lambda",
        "-extended-lambda", "--minimal", "-minimal", "-no-source-include", "--no-source-include", "--dlink-time-opt",
        "-dlto", "-lto", "--gen-opt-lto", "--device-int128", "-device-int128", "-ewp", "-hip-pch", "-fgpu-rdc",
        "-fno-gpu-rdc", "-munsafe-fp-atomics", "-ffast-math-honor-pragmas", "-ffp-contract=off", "-O0", "-O1", "-O2",
        "-O3", "-jitify",
    }
)  # fmt: skip
IGNORED_VALUES = (
    "--gpu-architecture=", "-arch=", "--maxrregcount=", "-maxrregcount=", "--offload-arch=", "--dopt=", "-rdc=",
    "--relocatable-device-code=", "--diag-suppress=", "-diag-suppress=", "--optimization-level=", "-W",
    "--ptxas-options=", "-Xptxas=", "--split-compile=", "-split-compile=", "--diag-error=", "-diag-error=",
    "--diag-warn=", "-diag-warn=", "--builtin-move-forward=", "-builtin-move-forward=", "--builtin-initializer-list=",
    "-builtin-initializer-list=", "--gpu-max-threads-per-block=", "-fp-contract=", "-ffp-contract=", "--time=",
    "--brief-diagnostics=", "-brief-diagnostics=",
)  # fmt: skip
IGNORED_PAIRS = ("-Xptxas", "--ptxas-options", "-arch", "--gpu-architecture", "-maxrregcount", "--maxrregcount")
DEVICE_DEFAULT = ("-default-device", "--device-as-default-execution-space", "--default-device")
SWITCHES = {
    "--fmad": "fmad", "-fmad": "fmad", "--ftz": "ftz", "-ftz": "ftz", "--prec-div": "prec_div",
    "-prec-div": "prec_div", "--prec-sqrt": "prec_sqrt", "-prec-sqrt": "prec_sqrt",
}  # fmt: skip
FAST_MATH = ("--use_fast_math", "-use_fast_math", "-ffast-math")


@dataclass(frozen=True)
class Options:
    """What a list of options asks for.

    Attributes
    ----------
    standard
        Language standard, such as ``"c++17"``.
    clang
        Arguments passed on to clang: include folders and files, in order.
    definitions
        Lines that define and undefine macros. They come after our own headers, which no macro can break then.
    fast_math
        ``--use_fast_math`` was given: ``expf`` is ``__expf``, and so on; as CUDA spells it, all of the below too.
    fmad
        ``-fmad=true``: a product and a sum of it are rounded once. By default each is rounded, which is one of the
        results that a compiler may choose where nothing is said.
    ftz
        ``-ftz=true``: subnormal float32 numbers are zeros of their sign, as operands and as results.
    prec_div
        ``-prec-div=false`` makes a float32 division a multiplication by a reciprocal.
    device_default
        Functions without ``__host__`` or ``__device__`` are device functions.
    """

    standard: str = "c++17"
    clang: tuple[str, ...] = ()
    definitions: tuple[str, ...] = ()
    fast_math: bool = False
    fmad: bool = False
    ftz: bool = False
    prec_div: bool = True
    device_default: bool = False


def parse(options: tuple[str, ...]) -> Options:
    """Read a list of options.

    Raises
    ------
    ValueError
        For an option that is not known; it names the option and those there are.
    """
    standard, fast_math, device_default = "c++17", False, False
    switches = {"fmad": False, "ftz": False, "prec_div": True, "prec_sqrt": True}
    passed: list[str] = []
    words = iter(options)
    for word in words:
        if not isinstance(word, str):
            raise TypeError(f"a compiler option must be a string, not {word!r}")
        name, _, value = word.partition("=")
        if word in ("-D", "-I", "-U", "--define-macro", "--include-path", "-include", "--pre-include"):
            passed += _passed(word, next(words, ""), word)
        elif name in ("--define-macro", "--include-path", "--undefine-macro", "--pre-include"):
            passed += _passed(name, value, word)
        elif word[:2] in ("-D", "-I", "-U") and len(word) > 2:
            passed += _passed(word[:2], word[2:], word)
        elif name in ("-std", "--std") and value:
            standard = value.replace("gnu", "c")
            if standard not in STANDARDS:
                raise ValueError(f"option {word!r}: the standard must be one of {', '.join(STANDARDS)}")
        elif word in IGNORED_PAIRS:
            next(words, "")
        elif word in FAST_MATH:
            fast_math = True
            switches |= {"fmad": True, "prec_div": False, "prec_sqrt": False}
            switches["ftz"] |= word != "-ffast-math"  # AMD's devices keep subnormal numbers
        elif word in DEVICE_DEFAULT:
            device_default = True
        elif name in SWITCHES and value in ("true", "false"):
            switches[SWITCHES[name]] = value == "true"
        elif word not in IGNORED and not word.startswith(IGNORED_VALUES):
            raise ValueError(
                f"unknown compiler option {word!r}; known are -D, -I, -U, -include, -std=, --use_fast_math, -fmad=, "
                "-ftz=, -prec-div=, -prec-sqrt=, -default-device"
            )
    lines = tuple(_definition(word) for word in passed if word[:2] in ("-D", "-U"))
    others = tuple(word for word in passed if word[:2] not in ("-D", "-U"))
    return Options(
        standard, others, lines, fast_math, switches["fmad"], switches["ftz"], switches["prec_div"], device_default
    )


def _definition(word: str) -> str:
    name, _, value = word[2:].partition("=")
    if word.startswith("-U"):
        return f"#undef {name}"
    return f"#define {name} {value if '=' in word else 1}"


def _passed(name: str, value: str, word: str) -> list[str]:
    if not value:
        raise ValueError(f"option {word!r} needs a value")
    short = {
        "--define-macro": "-D", "--include-path": "-I", "--undefine-macro": "-U", "--pre-include": "-include",
    }.get(name, name)  # fmt: skip
    return ["-include", value] if short == "-include" else [f"{short}{value}"]


def is_hip(device: Device) -> bool:
    """True for devices whose kernels are HIP."""
    return device.name.startswith("gfx")


def target(device: Device, options: Options) -> list[str]:
    """Arguments of ``clang -cc1`` that say what is compiled for: language, standard and processor.

    The host is fixed, so that ``long`` has 8 bytes and ``char`` is signed on every machine.
    """
    hip = is_hip(device)
    processor = device.name if hip or device.name.startswith("sm_") else "sm_90"
    triple = "amdgcn-amd-amdhsa" if hip else "nvptx64-nvidia-cuda"
    return [
        "-triple", triple, "-aux-triple", "x86_64-unknown-linux-gnu", "-target-cpu", processor, "-fcuda-is-device",
        f"-std={options.standard}", "-w", "-fno-caret-diagnostics",
        "-Wno-c++11-narrowing", "-Wno-c++11-narrowing-const-reference",
    ]  # fmt: skip


def language(device: Device, preprocessed: bool) -> list[str]:
    """The ``-x`` argument."""
    name = "hip" if is_hip(device) else "cuda"
    if preprocessed:
        return ["-x", "hip-cpp-output" if name == "hip" else "cuda-cpp-output"]
    return ["-x", name]

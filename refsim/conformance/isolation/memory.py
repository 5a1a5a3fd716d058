"""Where the judged process sees its inputs: shared memory, with canaries between them that the judge looks at."""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np

from oracle.cases import buffer_of
from refsim.conformance.backends.backend import Refused

Array = np.ndarray[Any, Any]
BAND = 4096
CANARY = b"\xa5"


class SharedInputs:
    """A file without a name that both processes map: input buffers with a band of canaries around each."""

    def __init__(self) -> None:
        handle, path = tempfile.mkstemp(prefix="refsim-inputs-")
        os.unlink(path)
        self.descriptor = handle

    def close(self) -> None:
        """Give the memory back; once is enough."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
        self.descriptor = -1

    def put(self, inputs: Mapping[str, Array | None]) -> tuple[list[dict[str, Any] | None], bytes]:
        """Lay the inputs out: where each lies, and the whole content."""
        places: list[dict[str, Any] | None] = []
        content = bytearray(CANARY * BAND)
        for name, array in inputs.items():
            if array is None:
                places.append(None)
                continue
            buffer = buffer_of(array)
            if not (buffer.flags.c_contiguous or buffer.flags.f_contiguous):
                raise Refused(f"{name} lies in memory with gaps, which another process cannot be given")
            whole = buffer.tobytes("A")
            start = array.__array_interface__["data"][0] - buffer.__array_interface__["data"][0] if array.size else 0
            places.append(
                {
                    "name": name,
                    "dtype": array.dtype.name,
                    "shape": array.shape,
                    "strides": array.strides,
                    "at": len(content) + start,
                }
            )
            content += whole + CANARY * (BAND + -len(whole) % 64)
        os.ftruncate(self.descriptor, len(content))
        os.pwrite(self.descriptor, content, 0)
        return places, bytes(content)

    def changed(self, content: bytes, inputs: Mapping[str, Array | None]) -> tuple[bool, list[str]]:
        """Whether a canary is gone, and which inputs were written to; those get what was written."""
        now = os.pread(self.descriptor, len(content), 0)
        if now == content:
            return False, []
        at = BAND
        written = []
        canaries = [now[:BAND] == content[:BAND]]
        for name, array in inputs.items():
            if array is None:
                continue
            buffer = buffer_of(array)
            beyond = at + buffer.nbytes
            after = beyond + BAND + -buffer.nbytes % 64
            if now[at:beyond] != content[at:beyond]:
                written.append(name)
                fortran = buffer.flags.f_contiguous and not buffer.flags.c_contiguous
                values: Array = np.frombuffer(now[at:beyond], buffer.dtype)
                buffer[...] = values.reshape(buffer.shape[::-1]).T if fortran else values.reshape(buffer.shape)
            canaries.append(now[beyond:after] == content[beyond:after])
            at = after
        return not all(canaries) or len(now) < len(content), written


def mapped(descriptor: int, places: list[dict[str, Any] | None]) -> dict[str, Array]:
    """The inputs as the judged process sees them: views of the shared memory."""
    memory = mmap.mmap(descriptor, os.fstat(descriptor).st_size)
    return {
        place["name"]: np.ndarray(
            tuple(place["shape"]), dtype_of(place["dtype"]), memory, place["at"], tuple(place["strides"])
        )
        for place in places
        if place is not None
    }


def dtype_of(name: str) -> np.dtype[Any]:
    """The dtype of a name, those of ml_dtypes among them."""
    return np.dtype(getattr(ml_dtypes, name, name))

"""The engine: runs programs of the kernel dialect as NumPy code over all threads of many blocks at once."""

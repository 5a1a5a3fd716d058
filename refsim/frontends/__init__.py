"""Front ends: from kernel source to the kernel dialect."""

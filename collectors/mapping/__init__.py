"""The mapping of kernels to lines: a trial of its own, beside those that measure."""

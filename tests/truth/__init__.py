"""Programs in which every line launches kernels with a grid that only it has: the truth about addresses."""

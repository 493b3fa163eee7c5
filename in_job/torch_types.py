"""Names for what belongs to torch. Their types are not known here: torch is the image's, not ours."""

from __future__ import annotations

from typing import Any

Torch = Any
"""The torch module."""

Module = Any
"""A torch.nn.Module."""

Profile = Any
"""A profile of torch.profiler or torch.autograd.profiler, or a record_function."""

Tensor = Any
Optimizer = Any

Event = Any
"""A torch.cuda.Event; None stands for no event where there is no GPU."""

Values = Any
"""What a module takes or returns: tensors in any nest of tuples, lists and dicts."""

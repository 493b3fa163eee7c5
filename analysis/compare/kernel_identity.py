"""What two spellings of a kernel or op name have in common; text in, text out.

``kernel_identity`` is equal for one kernel under two tools, ``kernel_family`` for the variants of one kernel,
and ``op_base_name`` is an op without the namespace of the framework.
"""

from __future__ import annotations

import functools
import re

_ARGUMENTS = re.compile(r"<.*>", re.DOTALL)
_VARIABLE = re.compile(
    r"_?(?:tilesize\d+x\d+x\d+|\d+x\d+(?:x\d+)?(?:_\d+x\d+)*|align\d+|[nt]{2}(?=_|$)|[NT]{2,3}(?=_|$)"
    r"|sm_?\d+|gfx\w+|[vh](?=_bz)|coop[AB]|\d+)"
)
_LAMBDA = re.compile(r"lambda\(([^()]*)\)")
_PARAMETERS = re.compile(r"\([^()]*\)")
_QUALIFIERS = re.compile(r"\b(?:const|void)\b|\s+")


@functools.lru_cache(maxsize=65536)
def kernel_identity(name: str) -> str:
    """The part of a normalised kernel name on which all tools agree: equal means the same kernel.

    CUPTI and nsys spell inner functions differently (``const T1&`` for ``Functor const&``, ``operator ()``,
    a return type inside a template argument). Parameter lists, ``const``, ``void`` and spaces are therefore
    removed; the parameter lists of lambdas are kept, because they tell the types.
    """
    text = _LAMBDA.sub(r"lambda[\1]", name.replace("(anonymous namespace)", "@"))
    text = _QUALIFIERS.sub(
        "", text.replace("operator()", "operator_call").replace("operator ()", "operator_call")
    )
    while True:
        shorter = _PARAMETERS.sub("", text)
        if shorter == text:
            return text
        text = shorter


def kernel_family(name: str) -> str:
    """The kernel name without what differs between its variants: template numbers, tile, layout, arch."""
    return _VARIABLE.sub("", _ARGUMENTS.sub("<>", name)) + "<" + "|".join(functors(name))


def functors(name: str) -> list[str]:
    """What a templated kernel computes, by the words of its template arguments: ``["CUDAFunctor_add"]``."""
    inner = re.search(r"<(.*)>", name, re.DOTALL)
    words = re.findall(r"[A-Za-z_]\w*(?:Functor|Impl|Ops?|kernel\w*|_cuda)\w*", inner[1]) if inner else []
    return list(dict.fromkeys(words))


def op_base_name(op: str) -> str:
    """``aten::gelu`` -> ``gelu``; ``autograd::...: MmBackward0`` stays."""
    return op.split("::", 1)[1] if op.startswith(("aten::", "prims::")) else op

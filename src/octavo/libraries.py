"""The heavy libraries, each loaded when first used.

Importing Octavo, or opening an account, must not pay for arrays and indexes that nobody asked for yet.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import shutil

    import faiss
    import numpy as np
    import tantivy

    Array = np.ndarray[Any, np.dtype[Any]]
else:

    class _Lazy(ModuleType):
        """A module that becomes the real one with the first name asked of it."""

        def __getattr__(self, name: str) -> Any:
            self.__dict__.update(vars(import_module(self.__name__)))
            return self.__dict__[name]

    faiss, np, shutil, tantivy = (_Lazy(name) for name in ("faiss", "numpy", "shutil", "tantivy"))
    Array = Any

__all__ = ["Array", "faiss", "np", "product", "shutil", "tantivy"]


def product(left: Array, right: Array) -> Array:
    """The matrix product of finite numbers; a flag over lanes that a processor does not use is no error."""
    with np.errstate(invalid="ignore"):
        return np.asarray(left @ right)

"""The paths that modules of a distribution had before. They work for one version, with a DeprecationWarning.

Programs import such paths, and stored values name them. The module of a former path has the same classes as that of the
present path. A package puts a `MovedModules` into `sys.meta_path` when it is imported itself.
"""

from heron.moved_modules import MovedModules

__all__ = ["MovedModules"]

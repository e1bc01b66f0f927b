"""Shows the author's own paths in tracebacks, although the code runs from an unpacked package that is soon gone."""

from __future__ import annotations

import sys
from importlib import machinery
from pathlib import Path
from types import CodeType

__all__ = ["OriginLoader", "show_origin"]


class OriginLoader(machinery.SourceFileLoader):
    """Compiles a file of `folder` under the name it has in `origin`; byte code is not cached, as it has its own."""

    def __init__(self, name: str, path: str, folder: Path, origin: Path) -> None:
        super().__init__(name, path)
        self._shown = str(origin / Path(path).relative_to(folder))

    def get_code(self, fullname: str) -> CodeType:
        """The code of the file; its source is found by this loader where the author's folder is not."""
        code: CodeType = compile(self.get_data(self.get_filename(fullname)), self._shown, "exec", dont_inherit=True)
        return code


def show_origin(folder: Path, origin: Path) -> None:
    """Makes every import from `folder`, and what is below it, show its paths as in `origin`, in this process."""

    def loader(name: str, path: str) -> OriginLoader:
        return OriginLoader(name, path, folder, origin)

    def finder(path: str) -> machinery.FileFinder:
        if not Path(path).is_relative_to(folder):
            raise ImportError(path)  # the next hook's business
        extensions = (machinery.ExtensionFileLoader, machinery.EXTENSION_SUFFIXES)
        return machinery.FileFinder(path, extensions, (loader, machinery.SOURCE_SUFFIXES))  # type: ignore[arg-type]

    sys.path_hooks.insert(0, finder)
    sys.path_importer_cache.pop(str(folder), None)

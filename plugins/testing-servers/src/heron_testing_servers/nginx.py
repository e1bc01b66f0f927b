"""An nginx with WebDAV over a folder and a password: a typical web server that accepts PUT."""

from __future__ import annotations

import shutil
from pathlib import Path

from heron_testing.ports import free_port
from heron_testing_servers.install import debian_package, installed
from heron_testing_servers.server_process import ServerProcess, answers

__all__ = ["FIXTURES", "NginxServer"]

FIXTURES = ("nginx",)

_CONF = """
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log {folder}/nginx-errors.log;
{modules}
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/tmp;
    proxy_temp_path {folder}/tmp-proxy;
    fastcgi_temp_path {folder}/tmp-fastcgi;
    uwsgi_temp_path {folder}/tmp-uwsgi;
    scgi_temp_path {folder}/tmp-scgi;
    server {{
        listen 127.0.0.1:{port};
        root {folder}/data;
        client_max_body_size {limit};
        location = /ready {{ return 200 "ready"; }}
        location / {{
            auth_basic "packages";
            auth_basic_user_file {folder}/users;
            dav_methods PUT DELETE;
            dav_ext_methods PROPFIND OPTIONS;
        }}
        location /readonly/ {{
            limit_except GET HEAD {{ deny all; }}
        }}
        location /static/ {{ }}
    }}
}}
"""


class NginxServer(ServerProcess):
    """Keeps its files in `data`; ``/packages`` exists. ``/readonly`` refuses PUT, and ``/static`` has no WebDAV."""

    user = "heron"
    password = "to-be-tested"  # for a server on the loopback address that ends with the tests

    def __init__(self, folder: Path, limit_bytes: int = 0) -> None:
        """Install Debian's nginx into the cache; bodies above `limit_bytes` are refused (0: no limit).

        Raises:
            ServerNotInstalledError: when it is not available.
        """
        self.address = ("127.0.0.1", free_port())
        """The address for clients: host and port."""
        self.data = folder / "data"
        """The files that it serves."""
        for each in ("packages", "readonly", "static"):
            (self.data / each).mkdir(parents=True, exist_ok=True)
        program = installed("nginx-dav-debian", _install)
        (folder / "users").write_text(f"{self.user}:{{PLAIN}}{self.password}\n")
        modules = program / "usr" / "lib" / "nginx" / "modules" / "ngx_http_dav_ext_module.so"
        conf = _CONF.format(folder=folder, modules=f"load_module {modules};", port=self.address[1], limit=limit_bytes)
        (folder / "nginx.conf").write_text(conf)
        command = [str(program / "usr" / "sbin" / "nginx"), "-c", str(folder / "nginx.conf"), "-p", str(folder)]
        super().__init__([*command, "-e", str(folder / "nginx-errors.log")], folder / "nginx.log", self._serves)

    @property
    def url(self) -> str:
        """Return the URL of the folder for packages, without user and password."""
        return f"http://127.0.0.1:{self.address[1]}/packages"

    def _serves(self) -> bool:
        return answers(f"http://127.0.0.1:{self.address[1]}/ready")


def _install(folder: Path) -> None:
    for name in ("nginx", "libnginx-mod-http-dav-ext"):
        debian_package(name)(folder)
    shutil.rmtree(folder / "usr" / "share", ignore_errors=True)

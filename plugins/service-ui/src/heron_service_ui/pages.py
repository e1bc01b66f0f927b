"""The routes of the pages: one shell for every view, and the files that it loads.

The shell holds no data: scripts read everything from the tracker's API and set it as text. The shell has no script or
style of its own, so the policy for content forbids both, and a name of a component cannot become a script.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from heron_service_tracker.calls.explain_command import explain_installed
from heron_service_tracker.http.application import Pages
from heron_service_tracker.paths.problems import problem_response
from heron_service_tracker.service import TrackerOptions
from heron_service_ui.asset_files import Asset, read_assets

__all__ = ["ui_pages"]

_OPEN_PATHS = re.compile(r"/|/ui(/.*)?|/ui-assets/.*", re.DOTALL)
_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
    )
)
_SHELL = """<!doctype html>
<html lang="en" data-period-s="{period_s:g}" data-logs="{logs}" data-tuples="{tuples}" data-token="{token}"
  data-actions="{actions}" data-explain="{explain}" data-run="{of_run}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Heron</title>
<link rel="icon" href="/ui-assets/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/ui-assets/vendor/uPlot.css">
<link rel="stylesheet" href="/ui-assets/style.css">
<link rel="stylesheet" href="/ui-assets/inside.css">
<script type="module" src="/ui-assets/app.js"></script>
</head>
<body>
<div id="app"><p>Loading…</p></div>
<noscript>These pages need JavaScript. The same values are at <a href="/api/v1/topologies">/api/v1</a>.</noscript>
</body>
</html>
"""


def ui_pages(options: TrackerOptions) -> Pages:
    """The pages for a tracker with these options."""
    files = read_assets()
    shell = _SHELL.format(
        period_s=options.period_s,
        logs="yes" if options.logs else "no",
        tuples="yes" if options.tuples else "no",
        token="yes" if options.access.token else "no",
        actions="yes" if options.audit else "no",
        explain="yes" if explain_installed() else "no",
        of_run="yes" if options.of_run else "no",
    ).encode()

    async def home(_request: Request) -> Response:
        return RedirectResponse("/ui/")

    async def page(_request: Request) -> Response:
        headers = {"content-security-policy": _POLICY}
        return Response(shell, media_type="text/html", headers=headers)

    async def file(request: Request) -> Response:
        return _file_response(files, request)

    routes = (
        Route("/", home, methods=["GET"]),
        Route("/ui", home, methods=["GET"]),
        Route("/ui/{view:path}", page, methods=["GET"]),
        Route("/ui-assets/{name:path}", file, methods=["GET"]),
    )
    return Pages(routes, _OPEN_PATHS)


def _file_response(files: Mapping[str, Asset], request: Request) -> Response:
    asset = files.get(request.path_params["name"])
    if asset is None:
        return problem_response(404, "there is no such file")
    headers = {"cache-control": "no-cache", "etag": asset.tag}
    if request.headers.get("if-none-match") == asset.tag:
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    return Response(asset.content, media_type=asset.media_type, headers=headers)

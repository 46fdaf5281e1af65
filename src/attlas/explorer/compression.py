"""Answers made small for the way: compressed for who can read it, and kept by the browser where they cannot change."""

import gzip
from functools import lru_cache

import flask

_SMALL = 1024  # bytes that are not worth it
_TYPES = ("text/", "application/json", "application/javascript", "image/svg")
_YEAR = "public, max-age=31536000, immutable"


def shrink(response: flask.Response) -> flask.Response:
    """Return the response, compressed if its reader takes gzip; with a note to keep it if its address names a version."""
    request = flask.request
    lasting = response.status_code == 200 and _names_a_version(request)
    if lasting:
        response.headers["Cache-Control"] = _YEAR
    if response.status_code != 200 or not (response.mimetype or "").startswith(_TYPES):
        return response
    response.vary.add("Accept-Encoding")
    takes = request.accept_encodings["gzip"] > 0
    if not takes or response.content_encoding or "Range" in request.headers:
        return response
    response.direct_passthrough = False  # a file, which is read here
    whole = response.get_data()
    if len(whole) >= _SMALL:
        response.set_data(_best(whole) if lasting else gzip.compress(whole, 5))
        response.content_encoding = "gzip"
        for name in ("Accept-Ranges", "ETag"):  # of the file as it was
            response.headers.pop(name, None)
    return response


def _names_a_version(request: flask.Request) -> bool:
    """Return whether another version of this file has another address."""
    path = request.path
    return path.startswith(("/assets/", "/_dash-component-suites/")) and (
        "m" in request.args or "v" in request.args or ".v" in path
    )


@lru_cache(maxsize=64)
def _best(whole: bytes) -> bytes:
    """Return a file as small as it gets; it is compressed once."""
    return gzip.compress(whole, 9)

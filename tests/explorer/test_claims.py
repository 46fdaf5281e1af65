"""The claims below /claims/: what is served, and where their settings are."""

import time
from types import SimpleNamespace
from urllib.parse import parse_qs, urlsplit

import flask
import pytest

from attlas.claims import find
from attlas.explorer import claims, pages


def _entry(name, **point):
    (claim,) = find([name])
    return SimpleNamespace(claim=claim, records=[SimpleNamespace(point=point)] if point else [])


@pytest.mark.parametrize(
    ("name", "point", "page", "given"),
    [
        ("aim.state-evolution", {"channel": "softmax", "tokens": 2, "rho": 0.5, "steps": 9}, "/aim",
         {"channel": ["softmax"], "tokens": ["2"], "rho": ["0.5"]}),
        ("trained.weight-decay", {"decay": 0.01, "rho": 40.0}, "/aim", {"decay": ["-2.0"]}),
        ("lenses.one-teacher", {"rho": 0.5}, "", {}),
        ("aim.width", {}, "", {}),
    ],
)  # fmt: skip
def test_settings_of_a_claim_are_a_place_in_the_explorer(name, point, page, given):
    address = urlsplit(claims.settings(_entry(name, **point)))
    assert address.path == page
    found = parse_qs(address.query)
    assert {key: [str(float(v)) if v[:1] in "-0123456789" else v for v in values] for key, values in found.items()} == {
        key: [str(float(v)) if v[:1] in "-0123456789" else v for v in values] for key, values in given.items()
    }
    for key, values in found.items():
        pages.find(page[1:]).controls[key].position(values[0])


def test_what_pages_use_is_served_beside_them(tmp_path):
    server = flask.Flask(__name__)
    claims.connect(server, tmp_path / "none.db", "quick", 0)
    client, end = server.test_client(), time.monotonic() + 60

    def get(name):
        with client.get(f"/claims/{name}") as answer:
            return answer.status_code, answer.mimetype, answer.data

    while b"Drawing every claim" in get("")[2] and time.monotonic() < end:
        time.sleep(0.1)
    assert get("attlas.js")[:2] == (200, "text/javascript")
    assert get("stix-two-math.woff2")[:2] == (200, "font/woff2")
    for name in (".attlas-site", "aim.width.png", "x.svg"):
        assert get(name)[0] == 404

import json
import socket
import time

import pytest
from flask.testing import FlaskClient

from attlas.explorer import claims
from attlas.explorer import server as room
from attlas.explorer.queue import Queue


class Visitor(FlaskClient):
    """A client at the address of the page, unless it says otherwise."""

    def open(self, *args, **kwargs):
        return super().open(*args, **{"base_url": "http://127.0.0.1:8050", **kwargs})


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    store = tmp_path_factory.mktemp("store") / "none.db"
    app = room.application(store, room.LOCAL, 8050, queue=Queue())
    app.test_client_class = Visitor
    return app.test_client()


def test_the_page_and_its_doors_answer(client) -> None:
    for path in ("/", "/bayes", "/features", "/recovery"):
        answer = client.get(path)
        assert answer.status_code == 200
        assert "script-src 'self'" in answer.headers["Content-Security-Policy"]
        assert "unsafe-eval" not in answer.headers["Content-Security-Policy"]


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", "127.0.0.1:80", "localhost:8051", "127.0.0.1:8050.evil.example", ""]
)
def test_a_foreign_host_is_refused(client, host) -> None:
    for path in ("/", "/_dash-layout", "/data/bayes.csv", "/claims/"):
        assert client.get(path, headers={"Host": host}).status_code == 403


@pytest.mark.parametrize("host", ["localhost:8050", "[::1]:8050", "127.0.0.1:8050"])
def test_this_machine_is_not(client, host) -> None:
    assert client.get("/", headers={"Host": host}).status_code == 200


def test_a_request_from_another_page_is_refused(client) -> None:
    answer = client.post("/_dash-update-component", json={}, headers={"Origin": "http://evil.example"})
    assert answer.status_code == 403
    assert client.get("/data/bayes.csv", headers={"Origin": "http://evil.example"}).status_code == 403
    embedded = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}
    assert client.get("/data/bayes.csv", headers=embedded).status_code == 403
    assert client.get("/", headers={"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}).status_code == 200


def test_everywhere_means_the_addresses_of_this_machine_not_names_of_others(tmp_path) -> None:
    app = room.application(tmp_path / "none.db", (*room.LOCAL, "0.0.0.0"), 8050, queue=Queue())
    codes = {
        host: app.test_client().get("/", headers={"Host": host}).status_code
        for host in ("192.0.2.7:8050", "[2001:db8::1]:8050", f"{socket.gethostname()}:8050", "evil.example:8050")
    }
    assert codes.pop("evil.example:8050") == 403
    assert set(codes.values()) == {200}


@pytest.mark.parametrize(
    "path",
    ["/etc/passwd", "/../../etc/passwd", "/assets/../server.py", "/assets/%2e%2e/server.py", "/claims/../x", "/nobody",
     "/claims/aim.nothing.html", "/claims/%2e%2e%2findex.html", "/claims/aim.width.db",
     "/data/none.csv", "/data/<img src=x>.csv",
     "/data/..%2fx.csv",
     "/claims/<script>alert(1)</script>.html", "/claims/.attlas-site", "/data", "/data/", "/claims/index.csv"],
)  # fmt: skip
def test_what_is_not_known_is_not_found(client, path) -> None:
    answer = client.get(path)
    assert answer.status_code == 404
    assert b"<script>alert" not in answer.data or answer.content_type.startswith("text/plain")
    assert b"<img" not in answer.data or answer.content_type.startswith("text/plain")
    assert b"root:" not in answer.data


def test_bad_settings_are_a_sentence(client) -> None:
    answer = client.get("/data/bayes.csv", query_string={"rho": "<img src=x>"})
    assert answer.status_code == 400
    assert answer.content_type.startswith("text/plain")
    assert answer.text == "rho must be from 0.05 to 1.5; got '<img src=x>'\n"
    answer = client.get("/data/spectrum.csv", query_string={"trained": "on", "channel": "hardmax"})
    assert answer.status_code == 400
    assert "needs training" in answer.text


def test_data_are_served(client) -> None:
    for door, header in (
        ("bayes", "what,alpha,rho,V,standard_error,d,seeds"),
        ("spectrum", "what,eigenvalue,value"),
        ("features", "what,n,error_over_variance,standard_error,seeds,claim"),
        ("recovery", "query,tokens,answer_1,answer_2,answer_3"),
        ("matrices", "matrix,row,column,known,true"),
    ):
        given = {"features": {"keys": "4"}, "spectrum": {"trained": "on"}}.get(door, {})
        answer = client.get(f"/data/{door}.csv", query_string=given)
        assert answer.status_code == 200
        assert answer.text.splitlines()[0] == header
    assert answer.headers["Content-Disposition"].startswith('attachment; filename="matrices_d-6_scale-3_seed-1_phase-0')


def test_a_request_has_a_largest_size(client) -> None:
    answer = client.post("/_dash-update-component", data=b"x" * 300_000, content_type="application/json")
    assert answer.status_code in (400, 413)


def call(client, output: str, changed: str = "", **values):
    """Return the answer of the callback that has this output, as a browser asks it.

    Parameters
    ----------
    values
        Of the arguments, by id and property (`amp_run__n_clicks`), or of all that are not named (`others`).
    """
    (entry,) = [entry for entry in client.get("/_dash-dependencies").json if output in entry["output"]]

    def named(part):
        name, prop = part["id"], part["property"]
        value = values.get(f"{name}__{prop}".replace("-", "_"), values.get("others"))
        return {"id": json.loads(name) if name.startswith("{") else name, "property": prop, "value": value}

    outputs = [
        dict(zip(("id", "property"), part.rsplit(".", 1), strict=True))
        for part in entry["output"].strip(".").split("...")
    ]
    body = {
        "output": entry["output"],
        "outputs": outputs if entry["output"].startswith("..") else outputs[0],
        "inputs": [named(part) for part in entry["inputs"]],
        "state": [named(part) for part in entry["state"]],
        "changedPropIds": [changed] if changed else [],
    }
    return client.post("/_dash-update-component", json=body)


def test_a_callback_with_nonsense_does_not_fall_over(client) -> None:
    for value in ("<b>", None, 1e308, 10**400, [1], {"a": 1}):
        answer = call(client, "bayes-curve.figure", others=value)
        assert answer.status_code == 200
        assert "must be" in answer.json["response"]["bayes-says"]["children"]


@pytest.mark.parametrize("trigger", ["run.n_clicks", "cancel.n_clicks", "clock.n_intervals", "begin.data"])
def test_a_first_call_begins_nothing_whatever_is_named_as_its_trigger(client, trigger) -> None:
    assert call(client, "amp-job.data", f"amp-{trigger}", amp_begin__data=False).json["response"] == {}


def step(client, changed: str, **values):
    return call(client, "sculpt-job.data", changed, **values, others=4).json["response"]  # d, scale and seed are 4


def test_a_run_begins_by_a_link_is_followed_and_ends_once(client) -> None:
    first = {"sculpt_run__n_clicks": None, "sculpt_cancel__n_clicks": None, "sculpt_clock__n_intervals": 0}
    begun = step(client, "sculpt-run.n_clicks", **first, sculpt_begin__data=True, sculpt_job__data=None)
    key = begun["sculpt-job"]["data"]
    assert begun["sculpt-clock"]["max_intervals"] == 1
    followed = first | {"sculpt_clock__n_intervals": 7, "sculpt_begin__data": True}
    told = step(client, "sculpt-clock.n_intervals", **followed, sculpt_job__data=key)
    assert told["sculpt-clock"]["max_intervals"] == 8  # strikes once more, after this answer
    assert told["sculpt-run"]["disabled"]
    back = step(client, "sculpt-cancel.n_clicks", **first, sculpt_begin__data=False, sculpt_job__data=key)
    assert back["sculpt-run"]["disabled"]  # who comes back to the door finds it going on
    pressed = followed | {"sculpt_cancel__n_clicks": 1}
    ended = step(client, "sculpt-cancel.n_clicks", **pressed, sculpt_job__data=key)
    assert ended["sculpt-status"]["children"] == "cancelled"
    assert ended["sculpt-job"]["data"] is None
    assert "sculpt-clock" not in ended
    assert step(client, "sculpt-clock.n_intervals", **pressed, sculpt_job__data=None) == {}
    lost = step(client, "sculpt-clock.n_intervals", **pressed, sculpt_job__data="nobody")
    assert lost["sculpt-status"]["children"] == "this run is no longer known"
    assert "sculpt-clock" not in lost


@pytest.mark.parametrize(
    "found",
    [
        None,
        "x",
        [1],
        {"frames": 3},
        {"frames": [{}], "true": [], "of": ""},
        {"frames": [{"proxy": [0, 0], "flat": [1]}]},
    ],
)
def test_only_what_was_found_is_written(client, found) -> None:
    assert call(client, "sculpt-file.data", "sculpt-save.n_clicks", others=found).json["response"] == {}


def test_claims_recover_from_a_store_that_was_damaged(tmp_path) -> None:
    store = tmp_path / "attlas.db"
    store.write_bytes(b"no store at all " * 200)
    site = claims.pages(store, "quick", 0)
    _wait(lambda: site.look() or site.error)
    assert "attlas.db" in site.error
    store.unlink()
    _wait(lambda: site.look() and not site.error)
    assert (site.look() / "index.html").is_file()


def _wait(condition) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)

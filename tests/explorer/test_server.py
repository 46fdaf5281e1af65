import json
import socket
import time

import pytest
from flask.testing import FlaskClient

from attlas.explorer import claims, simulations
from attlas.explorer import server as room
from attlas.explorer.pages import find
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
    for path in ("/", "/aim", "/features", "/recovery"):
        answer = client.get(path)
        assert answer.status_code == 200
        assert "script-src 'self'" in answer.headers["Content-Security-Policy"]
        assert "unsafe-eval" not in answer.headers["Content-Security-Policy"]


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", "127.0.0.1:80", "localhost:8051", "127.0.0.1:8050.evil.example", ""]
)
def test_a_foreign_host_is_refused(client, host) -> None:
    for path in ("/", "/_dash-layout", "/data/aim/curve.csv", "/claims/"):
        assert client.get(path, headers={"Host": host}).status_code == 403


@pytest.mark.parametrize("host", ["localhost:8050", "[::1]:8050", "127.0.0.1:8050"])
def test_this_machine_is_not(client, host) -> None:
    assert client.get("/", headers={"Host": host}).status_code == 200


def test_a_request_from_another_page_is_refused(client) -> None:
    answer = client.post("/_dash-update-component", json={}, headers={"Origin": "http://evil.example"})
    assert answer.status_code == 403
    assert client.get("/data/aim/curve.csv", headers={"Origin": "http://evil.example"}).status_code == 403
    embedded = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}
    assert client.get("/data/aim/curve.csv", headers=embedded).status_code == 403
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
     "/data/none.csv", "/data/aim/none.csv", "/data/none/curve.csv", "/data/aim/<img src=x>.csv", "/data/recovery/curve.csv",
     "/data/aim/..%2fx.csv", "/bayes",
     "/claims/<script>alert(1)</script>.html", "/claims/.attlas-site", "/data", "/data/", "/claims/index.csv"],
)  # fmt: skip
def test_what_is_not_known_is_not_found(client, path) -> None:
    answer = client.get(path)
    assert answer.status_code == 404
    assert b"<script>alert" not in answer.data or answer.content_type.startswith("text/plain")
    assert b"<img" not in answer.data or answer.content_type.startswith("text/plain")
    assert b"root:" not in answer.data


def test_bad_settings_are_a_sentence(client) -> None:
    answer = client.get("/data/aim/curve.csv", query_string={"rho": "<img src=x>"})
    assert answer.status_code == 400
    assert answer.content_type.startswith("text/plain")
    assert answer.text == "rho must be from 0.05 to 1.5; got '<img src=x>'\n"
    answer = client.get("/data/aim/spectrum.csv", query_string={"trained": "on", "channel": "hardmax"})
    assert answer.status_code == 400
    assert "needs training" in answer.text


def test_data_are_served(client) -> None:
    for name, header in (
        ("aim/curve", "what,alpha,mse,standard_error,seeds,d,claim"),
        ("aim/diagram", "what,alpha,rho,mse"),
        ("aim/spectrum", "what,eigenvalue,value"),
        (
            "features/curves",
            "what,n,mse_over_variance,alpha,ridge,freedom,from_noise,deviation,converged,standard_error,seeds,d,claim",
        ),
        ("features/heads", "what,heads,mse_over_variance,alpha,ridge,freedom,from_noise,deviation,converged"),
        ("recovery/query", "query,tokens,answer_1,answer_2,answer_3"),
        ("recovery/known", "matrix,row,column,known,true"),
    ):
        given = {"aim/spectrum": {"trained": "on"}}.get(name, {})
        answer = client.get(f"/data/{name}.csv", query_string=given)
        assert answer.status_code == 200
        assert answer.text.splitlines()[0] == header
    assert answer.headers["Content-Disposition"] == 'attachment; filename="recovery_known_dim-3_box-0_queries-5.csv"'
    answer = client.get("/data/aim/diagram.csv")
    assert "_alpha-0.1248_" in answer.headers["Content-Disposition"]  # its value, not the position of its slider
    answer = client.get("/data/x.csv/y.csv")
    assert answer.text.startswith(
        "No data set 'x.csv/y'; available: features/curves, features/heads, recovery/query, recovery/known, aim/"
    )


def test_a_request_has_a_largest_size(client) -> None:
    answer = client.post("/_dash-update-component", data=b"x" * 300_000, content_type="application/json")
    assert answer.status_code in (400, 413)


def call(client, output: str, changed: str = "", **values):
    """Return the answer of the callback that has this output, as a browser asks it.

    Parameters
    ----------
    values
        Of the arguments, by id and property (`aim_amp_run__n_clicks`), or of all that are not named (`others`).
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
        answer = call(client, "aim-curve-summary.children", others=value)
        assert answer.status_code == 200
        assert "must be" in answer.json["response"]["aim-curve-summary"]["children"]
        drawn = call(client, "aim-curve.figure", others=value).json["response"]
        assert drawn["aim-curve-place"]["className"] == "blank"


def test_a_store_that_cannot_be_read_is_named_below_the_theory(tmp_path) -> None:
    store = tmp_path / "bad.db"
    store.write_bytes(b"no store at all " * 200)
    app = room.application(store, room.LOCAL, 8050, queue=Queue())
    app.test_client_class = Visitor
    starts = {f'{{"control":"aim:{name}"}}__value': c.start for name, c in find("aim").controls.items()}
    _wait(lambda: "bad.db" in simulations.trouble(store, "aim"))
    answer = call(app.test_client(), "aim-curve-summary.children", **starts)
    text = answer.json["response"]["aim-curve-summary"]["children"]
    assert text.startswith("At α = 0.1248 the best error is V = ")
    assert "Simulations cannot be shown: " in text


@pytest.mark.parametrize("trigger", ["run.n_clicks", "cancel.n_clicks", "clock.n_intervals", "begin.data"])
def test_a_first_call_begins_nothing_whatever_is_named_as_its_trigger(client, trigger) -> None:
    assert call(client, "aim-amp-key.data", f"aim-amp-{trigger}", aim_amp_begin__data=False).json["response"] == {}


PROPERTIES = {"run": "n_clicks", "cancel": "n_clicks", "clock": "n_intervals", "begin": "data", "key": "data"}


def step(client, changed: str, **values):
    """Return what the buttons of sculpting are told, by part; d, scale and seed are 4, and nothing was found before."""
    values = {f"recovery_sculpt_{part}__{PROPERTIES[part]}": value for part, value in values.items()}
    changed = f"recovery-sculpt-{changed}.{PROPERTIES[changed]}"
    answer = call(client, "recovery-sculpt-key.data", changed, **values, recovery_sculpt_found__data=None, others=4)
    return {name.removeprefix("recovery-sculpt-"): value for name, value in answer.json["response"].items()}


def test_a_run_begins_by_a_link_is_followed_and_ends_once(client) -> None:
    first = {"run": None, "cancel": None, "clock": 0}
    begun = step(client, "run", **first, begin=True, key=None)
    key = begun["key"]["data"]
    assert begun["clock"]["max_intervals"] == 1
    followed = first | {"clock": 7, "begin": True}
    status = step(client, "clock", **followed, key=key)
    assert status["clock"]["max_intervals"] == 8  # ticks once more, after this answer
    assert status["run"]["disabled"]
    back = step(client, "cancel", **first, begin=False, key=key)
    assert back["run"]["disabled"]  # who comes back to the page finds it going on
    pressed = followed | {"cancel": 1}
    ended = step(client, "cancel", **pressed, key=key)
    assert ended["status"]["children"] == "Cancelled"
    assert ended["key"]["data"] is None
    assert "clock" not in ended
    assert step(client, "clock", **pressed, key=None) == {}
    lost = step(client, "clock", **pressed, key="nobody")
    assert lost["status"]["children"] == "This run is no longer known"
    assert "clock" not in lost


@pytest.mark.parametrize(
    "found",
    [
        None,
        "x",
        [1],
        {"frames": 3},
        {"frames": [{}], "true": [], "title": ""},
        {"frames": [{"proxy": [0, 0], "flat": [1]}]},
    ],
)
def test_only_what_was_found_is_written(client, found) -> None:
    assert (
        call(client, "recovery-sculpt-file.data", "recovery-sculpt-save.n_clicks", others=found).json["response"] == {}
    )


def test_claims_recover_from_a_store_that_was_damaged(tmp_path) -> None:
    store = tmp_path / "attlas.db"
    store.write_bytes(b"no store at all " * 200)
    site = claims.site(store, "quick", 0)
    _wait(lambda: site.current() or site.error)
    assert "attlas.db" in site.error
    store.unlink()
    _wait(lambda: site.current() and not site.error)
    assert (site.current() / "index.html").is_file()


def _wait(condition) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


HOSTILE = [
    b"", b"{", b"null", b"[]", b"3", b'"x"', b"{}", b"\xff\xfe", b'{"output": 3}', b'{"output": "x"}',
    b'{"output": "page.children", "inputs": 3}', b'{"output": "page.children", "inputs": [3]}',
    b'{"output": "nothing.children", "inputs": [], "changedPropIds": []}',
    b'{"output": "..page.children...pages.children..", "inputs": [{"id": "address", "property": "pathname"}]}',
    b'{"output": "..page.children...pages.children..", "inputs": [], "outputs": 3, "changedPropIds": ["x"]}',
    b'{"output": "..page.children...pages.children..", "inputs": [{"id": {"a": []}, "property": []}], "state": {}}',
    b'{"output": {"a": 1}, "inputs": []}', b"[" * 100_000, b'{"output": "' + b"x" * 100_000 + b'", "inputs": []}',
]  # fmt: skip


@pytest.mark.parametrize("body", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("kind", ["application/json", "text/plain"])
def test_a_malformed_post_is_400_without_a_traceback(client, body, kind, capfd, caplog) -> None:
    answer = client.post("/_dash-update-component", data=body, content_type=kind)
    assert answer.status_code == 400
    said = "".join(capfd.readouterr()) + caplog.text + answer.text
    assert "Traceback" not in said
    assert "site-packages" not in said


@pytest.mark.parametrize(
    "path",
    ["/_dash-component-suites/none/x.js", "/_dash-component-suites/dash/none.js", "/_dash-component-suites/../x",
     "/_dash-component-suites/dash/../../x.py", "/_dash-none"],
)  # fmt: skip
def test_an_unknown_component_is_404_without_a_traceback(client, path, capfd, caplog) -> None:
    answer = client.get(path)
    assert answer.status_code in (200, 404) if path == "/_dash-none" else answer.status_code == 404
    assert "Traceback" not in "".join(capfd.readouterr()) + caplog.text + answer.text


def test_data_is_computed_a_few_at_a_time(client, monkeypatch) -> None:
    """A flood of data files takes one thread to compute and three to wait; the rest are told to come back."""
    import threading

    from attlas.explorer.page import Section

    go, inside = threading.Event(), threading.Semaphore(0)
    view = Section.view

    def slow(self, *args, **kwargs):
        inside.release()
        assert go.wait(60)
        return view(self, *args, **kwargs)

    monkeypatch.setattr(Section, "view", slow)
    codes: list[int] = []
    flood = [
        threading.Thread(target=lambda: codes.append(client.get("/data/aim/curve.csv").status_code)) for _ in range(12)
    ]
    for one in flood:
        one.start()
    assert inside.acquire(timeout=60)
    deadline = time.monotonic() + 60
    while len(codes) < 8 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert codes == [503] * 8
    assert not inside.acquire(blocking=False)  # one at a time
    go.set()
    for one in flood:
        one.join()
    assert sorted(codes) == [200] * 4 + [503] * 8


def test_sigterm_ends_with_143(tmp_path) -> None:
    import signal
    import subprocess
    import sys

    command = [sys.executable, "-m", "attlas", "explore", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as server:
        for line in server.stdout:
            if "attlas is at" in line:
                break
        server.send_signal(signal.SIGTERM)
        said = server.communicate(timeout=60)[1]
    assert server.returncode == 143
    assert "Traceback" not in said

import gzip
import json
import re
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
        ("recovery/body", "phase,what,x,y,end_x,end_y"),
        ("recovery/query", "query,tokens,answer_1,answer_2,answer_3,answer_4,answer_5"),
        ("recovery/matrices", "matrix,row,column,known,true"),
    ):
        given = {"aim/spectrum": {"trained": "on"}}.get(name, {})
        answer = client.get(f"/data/{name}.csv", query_string=given)
        assert answer.status_code == 200
        assert answer.text.splitlines()[0] == header
    assert (
        answer.headers["Content-Disposition"] == 'attachment; filename="recovery_matrices_dim-5_box-0_queries-18.csv"'
    )
    answer = client.get("/data/aim/diagram.csv")
    assert "_alpha-0.1248_" in answer.headers["Content-Disposition"]  # its value, not the position of its slider
    answer = client.get("/data/x.csv/y.csv")
    recovery = "recovery/body, recovery/query, recovery/matrices"
    assert answer.text.startswith(
        f"No data set 'x.csv/y'; available: features/curves, features/heads, {recovery}, aim/"
    )


def test_answers_are_compressed_for_who_reads_that_and_kept_where_their_address_names_a_version(client) -> None:
    page = client.get("/").text
    scripts = re.findall(r'(?:src|href)="(/[^"]+)"', page)
    assert any("plotly.min.js?v=" in path for path in scripts)
    assert not any("dash_table" in path for path in scripts)
    for path in scripts:
        with client.get(path) as plain, client.get(path, headers={"Accept-Encoding": "br, gzip"}) as small:
            assert "immutable" in plain.headers["Cache-Control"], path
            assert plain.content_encoding is None
            if len(plain.data) >= 1024:
                assert small.content_encoding == "gzip"
                assert gzip.decompress(small.data) == plain.data
                assert "Accept-Encoding" in small.headers["Vary"]
    grid = client.get("/grid/aim/bayes.json", headers={"Accept-Encoding": "gzip"})
    assert len(gzip.decompress(grid.data)) > 2 * len(grid.data)
    assert "immutable" not in grid.headers.get("Cache-Control", "")
    assert client.get("/nobody", headers={"Accept-Encoding": "gzip"}).content_encoding is None
    for takes, coded in (("gzip;q=0", None), ("identity, *;q=0", None), ("GZIP;q=0.5", "gzip"), ("*", "gzip")):
        assert client.get("/grid/aim/bayes.json", headers={"Accept-Encoding": takes}).content_encoding == coded, takes
    assert client.get("/grid/aim/bayes.json?channel=x").status_code == 400


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
        for given in (value, {"rho": value}):
            answer = call(client, "aim-curve-drawn.data", aim_curve_settled__data=given, others=value)
            assert answer.status_code == 200
            drawn = answer.json["response"]["aim-curve-drawn"]["data"]
            if given != {"a": 1}:  # which are settings, if none that the page has
                assert "must be" in drawn["summary"] or "no settings" in drawn["summary"]
                assert [shown for _, shown in drawn["plots"]] == ["blank"] * 4


def test_a_store_that_cannot_be_read_is_named_below_the_theory(tmp_path) -> None:
    store = tmp_path / "bad.db"
    store.write_bytes(b"no store at all " * 200)
    app = room.application(store, room.LOCAL, 8050, queue=Queue())
    app.test_client_class = Visitor
    starts = {name: control.start for name, control in find("aim").controls.items()}
    _wait(lambda: "bad.db" in simulations.trouble(store, "aim"))
    answer = call(app.test_client(), "aim-curve-drawn.data", aim_curve_settled__data=starts)
    text = answer.json["response"]["aim-curve-drawn"]["data"]["summary"]
    assert text.startswith("At α = 0.1248 the best error is V = ")
    assert "Simulations cannot be shown: " in text


@pytest.mark.parametrize("trigger", ["run.n_clicks", "cancel.n_clicks", "clock.n_intervals", "shown.data"])
def test_a_first_call_begins_nothing_whatever_is_named_as_its_trigger(client, trigger) -> None:
    assert call(client, "aim-amp-key.data", f"aim-amp-{trigger}").json["response"] == {}


PROPERTIES = {"run": "n_clicks", "cancel": "n_clicks", "clock": "n_intervals", "key": "data"}


def step(client, changed: str, **values):
    """Return what the buttons of message passing are told, by part; settings are where they start, and nothing was found."""
    values = {f"aim_amp_{part}__{PROPERTIES[part]}": value for part, value in values.items()}
    values |= {f'{{"control":"aim:{name}"}}__value': c.start for name, c in find("aim").controls.items()}
    changed = f"aim-amp-{changed}.{PROPERTIES[changed]}"
    answer = call(client, "aim-amp-key.data", changed, **values, aim_amp_found__data=None)
    return {name.removeprefix("aim-amp-"): value for name, value in answer.json["response"].items()}


def test_a_run_is_begun_followed_and_ends_once(client) -> None:
    first = {"run": None, "cancel": None, "clock": 0}
    begun = step(client, "run", **first | {"run": 1}, key=None)
    key = begun["key"]["data"]
    assert begun["clock"]["max_intervals"] == 1
    followed = first | {"run": 1, "clock": 7}
    status = step(client, "clock", **followed, key=key)
    assert status["clock"]["max_intervals"] == 8  # ticks once more, after this answer
    assert status["run"]["disabled"]
    back = step(client, "cancel", **first, key=key)
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


@pytest.mark.parametrize("found", [None, "x", [1], {"seed": 3}, [{"seed": 3}], [{"mse": [1]}]])
def test_only_what_was_found_is_written(client, found) -> None:
    assert call(client, "aim-amp-file.data", "aim-amp-save.n_clicks", others=found).json["response"] == {}


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


def test_parts_that_are_not_those_of_the_callback_are_400(client, caplog) -> None:
    """Every callback that the server has, with outputs or inputs that its page would not send."""
    asked = refused = 0
    for entry in client.get("/_dash-dependencies").json:
        if entry.get("clientside_function"):
            continue
        output = entry["output"]
        names = [part.rsplit(".", 1) for part in output.strip(".").split("...")]
        as_text = [{"id": name, "property": prop} for name, prop in names]
        good = [each | {"id": json.loads(each["id"])} if each["id"].startswith("{") else each for each in as_text]
        several = output.startswith("..")
        wrong = [None, 3, [], {}, [[]], good if not several else good[0], good * 2]
        if good != as_text:
            wrong.append(as_text if several else as_text[0])
        body = {"output": output, "inputs": [], "state": [], "changedPropIds": []}
        for part in ("inputs", "state"):
            body[part] = [
                {
                    "id": json.loads(each["id"]) if each["id"].startswith("{") else each["id"],
                    "property": each["property"],
                }
                for each in entry[part]
            ]
        for outputs in wrong:
            assert client.post("/_dash-update-component", json=body | {"outputs": outputs}).status_code == 400
            asked += 1
        right = good if several else good[0]
        for inputs in ([], body["inputs"] * 2):
            answer = client.post(
                "/_dash-update-component", json=body | {"outputs": right, "inputs": inputs, "state": []}
            )
            assert answer.status_code in (200, 400), output
            refused += answer.status_code == 400
        if output.startswith("{"):
            answer = client.post("/_dash-update-component", json=body | {"outputs": good[0]})
            assert answer.status_code == 200
    assert asked > 80
    assert refused > 20


@pytest.mark.parametrize(
    "path",
    ["/_dash-component-suites/none/x.js", "/_dash-component-suites/dash/none.js", "/_dash-component-suites/../x",
     "/_dash-component-suites/dash/../../x.py", "/_dash-none", "/_dash-component-suites/dash", "/_dash-component-suites/",
     "/_dash-update-component", "/data/x/y", "/grid/aim/none.json", "/grid/none/bayes.json", "/grid/aim",
     "/grid/features/x.json"],
)  # fmt: skip
def test_an_unknown_component_is_404_without_a_traceback(client, path, capfd, caplog) -> None:
    answer = client.get(path)
    assert answer.status_code == 404
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

"""Nonsense sent to the explorer: it answers with a sentence, and goes on answering."""

import json
import random

from attlas.explorer import server as room
from attlas.explorer.queue import Queue

from ..explorer.test_server import HOSTILE, Visitor
from .form import tell, times

PATHS = [
    "/", "/aim", "/_dash-layout", "/_dash-dependencies", "/_dash-update-component", "/data/aim/curve.csv", "/claims/",
    "/assets/x", "/_dash-component-suites/dash/x.js", "/_favicon.ico", "/../../etc/passwd", "/data/%00/x.csv", "/claims/%0a",
]  # fmt: skip


def test_hostile_requests(tmp_path, caplog, capfd):
    app = room.application(tmp_path / "none.db", room.LOCAL, 8050, queue=Queue())
    app.test_client_class = Visitor
    client, rng, counts = app.test_client(), random.Random(0), {}
    for _ in range(times(80, 2900)):
        path = rng.choice(PATHS) + rng.choice(
            ["", "", "?", f"?alpha={rng.choice(['nan', '1e999', '-1', '%00', 'x' * 300])}"]
        )
        method = rng.choice(["GET", "GET", "POST", "PUT", "DELETE", "OPTIONS", "HEAD", "PATCH"])
        body = rng.choice(
            [*HOSTILE, rng.randbytes(rng.randrange(200)), json.dumps({"output": rng.choice(PATHS)}).encode()]
        )
        headers = rng.choice(
            [{}, {"Host": "evil.example"}, {"Origin": "null"}, {"Content-Length": "5"}, {"Accept": "\x7f"}]
        )
        kind = rng.choice(["application/json", "text/plain", "multipart/form-data", ""])
        answer = client.open(path, method=method, data=body, headers=headers, content_type=kind)
        counts[answer.status_code] = counts.get(answer.status_code, 0) + 1
        for leak in (b"Traceback", b"site-packages", str(tmp_path).encode()):
            assert leak not in answer.data
        answer.close()
    assert client.get("/").status_code == 200
    assert not [code for code in counts if code >= 500]
    assert "Traceback" not in "".join(capfd.readouterr()) + caplog.text
    with capfd.disabled():
        tell(f"hostile requests: {sum(counts.values())}, by status {dict(sorted(counts.items()))}")

"""Writes every statement as HTML, for `test_typeset.py` to compare with."""

import json
from pathlib import Path

from attlas.claims import find
from attlas.report.typeset import sentence

if __name__ == "__main__":
    shown = {claim.id: str(sentence(claim.statement)) for claim in find() if not claim.id.startswith("test.")}
    path = Path(__file__).parent / "assets" / "statements.json"
    path.write_text(json.dumps(shown, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

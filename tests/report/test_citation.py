"""A claim's own citation says which results it is about."""

from dataclasses import replace

from attlas.report.citation import citation, digest


def test_a_claim_is_cited_with_its_version_its_run_and_its_results(judged):
    (entry,) = [entry for entry in judged if entry.claim.id == "aim.softmax-threshold"]
    text = citation(entry, "full", 3)
    assert text.startswith("@misc{attlas-aim-softmax-threshold,\n")
    assert f"version {entry.claim.version}}}" in text
    assert "full tier, run 3: supported" in text
    assert digest(entry.records) in text
    assert r"version 1, \_x\_=2}" in citation(replace(entry, claim=replace(entry.claim, version=1)), "full", 3, "_x_=2")
    assert text.count("{") == text.count("}")
    formulas = replace(entry, claim=replace(entry.claim, statement=r"Of 50 % & more, $\alpha_c > \rho^2$ holds"))
    assert r"title        = {{Of 50 \% \& more, $\alpha_c > \rho^2$ holds}}" in citation(formulas, "full", 0)
    hostile = replace(entry, claim=replace(entry.claim, statement=r"With S >= 0 and a \brace{ or two"))
    assert r"{{With S $\ge$ 0 and a \textbackslash{}brace\textbraceleft{} or two}}" in citation(hostile, "full", 0)


def test_the_digest_is_that_of_what_was_computed(judged):
    (entry,) = [entry for entry in judged if entry.claim.id == "test.fast"]
    known = digest(entry.records)
    slower = [replace(record, seconds=9.0, versions={"attlas": "9"}) for record in reversed(entry.records)]
    assert digest(slower) == known
    assert digest(entry.records[1:]) != known
    other = replace(entry.records[0], payload=entry.records[1].payload)
    assert digest([other, *entry.records[1:]]) != known

"""What holds for every page, whichever doors there are."""

import csv
import json
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attlas.claims import doors
from attlas.errors import InputError
from attlas.explorer import frame, pages
from attlas.explorer.controls import Slider, read

PAGES = [pages.find(key) for key in pages.names()]
every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.door)


def positions(control):
    """Every position of a control."""
    if isinstance(control, Slider):
        count = round((control.high - control.low) / control.step) + 1
        return [control.position(control.low + i * control.step) for i in range(count)]
    return list(control.options)


def components(part):
    """Every component of a layout, with what is in it."""
    if isinstance(part, list | tuple):
        for child in part:
            yield from components(child)
    elif hasattr(part, "to_plotly_json"):
        yield part
        yield from components(getattr(part, "children", None))


def test_pages_stand_in_the_order_of_their_doors() -> None:
    assert list(pages.names()) == [key for key in doors() if key in pages.names()]


@every_page
def test_a_page_is_named_after_its_door(page) -> None:
    assert pages.find(page.door) is page
    assert page.title == doors()[page.door].title
    title, lead, *_ = page.show({})
    assert title.children == page.title
    assert doors()[page.door].question in lead.children


@every_page
def test_no_two_parts_of_a_page_have_the_same_name(page) -> None:
    assert len(page.controls) == sum(len(section.address) for section in page.sections)
    ids = [json.dumps(c.id, sort_keys=True) for c in components(page.show({})) if getattr(c, "id", None)]
    assert len(ids) == len(set(ids))


@every_page
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_the_address_is_the_state(page, data) -> None:
    chosen = {name: data.draw(st.sampled_from(positions(control)), name) for name, control in page.controls.items()}
    found, refused = frame._positions(page, "?" + "&".join(f"{name}={value}" for name, value in chosen.items()))
    assert (found, refused) == (chosen, [])
    shown = {c.id["control"]: c.value for c in components(page.show(found)) if "control" in (getattr(c, "id", None) or ())
             and hasattr(c, "value")}  # fmt: skip
    assert shown == {f"{page.door}:{name}": value for name, value in chosen.items()}


@every_page
def test_every_plot_is_drawn_and_every_file_is_a_table(page, tmp_path) -> None:
    for given_ in page.warm:
        for section in page.sections:
            view = section.view(given_, tmp_path / "none.db")
            text = section.summary(view)
            assert text == "" or text.endswith(".")
            for plot in section.plots:
                figure = plot.draw(view)
                assert figure is None or (figure["data"] and json.dumps(figure, allow_nan=False))
    for name, (section, data) in page.files.items():
        try:
            header, *rows = csv.reader(data(section.view(page.warm[-1], tmp_path / "none.db")).splitlines())
        except InputError as error:  # such as a spectrum where training is not shown
            raise AssertionError(f"the last of the warm settings has no {name}") from error
        assert rows
        assert {len(row) for row in rows} == {len(header)}


@every_page
def test_a_job_is_found_in_a_process_that_imports_no_other_page_and_nothing_of_the_server(page) -> None:
    script = f"""
import sys
from attlas.explorer import work
page = work.find({page.door!r})
assert set(page.jobs) == {set(page.jobs)!r}
loaded = {{name.split(".")[3] for name in sys.modules if name.startswith("attlas.explorer.pages.")}}
assert loaded == {{{page.door!r}}}, loaded
assert not {{"dash", "flask", "plotly", "matplotlib", "dask"}} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


@every_page
def test_the_settings_of_a_job_are_json_and_what_a_browser_has_not_found_is_nothing(page) -> None:
    for section in page.sections:
        if section.job:
            nothing = section.job.parse(None)
            assert not nothing
            chosen = section.job.settings(read(section.address, {}), nothing)
            assert json.loads(json.dumps(chosen)) == chosen

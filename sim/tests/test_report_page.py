"""The report in a browser: it draws, sorts, filters, asks for nothing, and says nothing on the console."""

import json
import re
import shutil
from pathlib import Path

import pytest

from examples import moe, swiglu
from sim.prediction import predict as predict_beats
from sim.report import report_html, run_of_beats, run_of_tiles
from sim.tile import RooflineMachine, predict
from step_hw.design import Design
from step_lang import metrics
from step_lang.hwconfig import HardwareConfig

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@pytest.fixture(scope="module", params=["tile", "beat"])
def run(request):
    if request.param == "tile":
        program = moe.build(tiling="dynamic", batch=16, hidden=16, intermediate=128, regions=2)
        return run_of_tiles(predict(program, RooflineMachine(), moe.streams(program), record=True))
    design = Design(swiglu.build(batch=16, hidden=32, intermediate=32, tile_b=8, tile_f=8), HardwareConfig(tile=4))
    return run_of_beats(design.lowered, design.graph, design.hw, metrics(design.program), {},
                        predict_beats(design.graph, design.hw, trace=True))


@pytest.fixture(scope="module")
def page(run, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(report_html(run, {"note": "<b>&\"'"}), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def browser(page, tmp_path_factory):
    selenium = pytest.importorskip("selenium", reason="selenium is not installed")
    from selenium import webdriver

    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    driver = shutil.which("chromedriver")
    if program is None or driver is None:
        pytest.skip(f"no browser: {' or '.join(BROWSERS[:1])} and chromedriver are not installed (on Debian: apt-get "
                    "install chromium chromium-driver)")
    assert selenium
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                     "--disable-background-networking", f"--user-data-dir={tmp_path_factory.mktemp('profile')}",
                     "--window-size=1280,900"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    made = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    try:
        made.get("about:blank")
        made.get_log("performance")   # of what the browser opened with
        made.get(page.as_uri())
        yield made
    finally:
        made.quit()


def script(browser, text: str, *arguments):
    return browser.execute_script(f"return {text}", *arguments)


def test_page_needs_nothing(run, page):
    text = page.read_text()
    assert text == report_html(run, {"note": "<b>&\"'"})
    assert "&lt;b&gt;&amp;" in text
    assert set(re.findall(r"url\(.", text)) <= {"url(#"}   # the arrow heads' marker
    for word in ("src=", "@import", "fetch(", "XMLHttpRequest", "https://", str(Path.cwd()), str(Path.home())):
        assert word not in text, word


def test_everything_is_drawn(run, browser):
    assert browser.title == f"{run.program.name}: {run.simulator}"
    count = "document.querySelectorAll(arguments[0]).length"
    assert script(browser, count, "#graph svg g.operator") == len(run.program.operators)
    assert script(browser, count, ".bar") == len(run.units)
    assert script(browser, count, "#operators tbody tr") == len(run.program.operators)
    assert script(browser, count, "#units tbody tr") == len(run.units)
    assert script(browser, count, "path.curve") == sum(curve.values.any() for curve in run.curves) >= 2
    assert script(browser, count, "#buffers tbody tr") == len(run.onchip_peak)
    assert script(browser, count, "#roofline circle") == 1
    assert script(browser, count, ".finding li") >= 1
    shapes = script(browser, "document.querySelector('#graph svg').textContent")
    assert f"{run.program.operators[0].output.shape[0]}" in shapes and "busy " in shapes
    # Drawn means it takes room: nothing hidden, nothing wider than the window.
    for what in ("#graph svg", "#roofline svg", "#time svg", ".bar .track span", "#units tbody tr"):
        box = script(browser, "(({width, height}) => [width, height])"
                              "(document.querySelector(arguments[0]).getBoundingClientRect())", what)
        assert min(box) > 0, what
    assert script(browser, "document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    assert script(browser, "[...document.querySelectorAll('#stalls .track')].every(track => Math.abs("
                           "[...track.children]"
                           ".reduce((sum, part) => sum + parseFloat(part.style.width), 0) - 100) < 0.1)")


def column(browser, table: str, number: int) -> list[str]:
    return script(browser, "[...document.getElementById(arguments[0]).tBodies[0].rows].map("
                           "row => row.cells[arguments[1]].dataset.key)", table, number)


@pytest.mark.parametrize(("table", "number", "numeric"), [("operators", 4, True), ("operators", 0, False),
                                                          ("units", 3, True), ("units", 1, False)])
def test_tables_sort(browser, table, number, numeric):
    button = browser.find_elements("css selector", f"#{table} th button")[number]
    before = column(browser, table, number)
    orders = []
    for _ in range(2):
        script(browser, "arguments[0].click()", button)
        found = column(browser, table, number)
        values = [float(value) for value in found] if numeric else [value.lower() for value in found]
        state = script(browser, "arguments[0].parentNode.getAttribute('aria-sort')", button)
        orders.append(state)
        assert sorted(found) == sorted(before)
        if numeric:
            assert values == sorted(values, reverse=state == "descending")
        else:
            assert (values[0] <= values[-1]) == (state == "ascending")
    assert orders == (["descending", "ascending"] if numeric else ["ascending", "descending"])


def test_tables_filter(run, browser):
    field = browser.find_element("css selector", "input[data-table=units]")
    visible = "[...document.querySelectorAll('#units tbody tr')].filter(row => row.offsetParent !== null).length"
    field.send_keys("matmul")
    assert len(run.units) > script(browser, visible) >= sum("matmul" in unit.name for unit in run.units) > 0
    field.clear()
    field.send_keys(" \b")
    assert script(browser, visible) == len(run.units)


def test_a_wide_picture_fits_the_page_if_asked(run, browser):
    width = "document.querySelector('#graph svg').getBoundingClientRect().width"
    room = script(browser, "document.querySelector('#graph .scroll').clientWidth")
    box = browser.find_element("id", "fit")
    whole = script(browser, width)
    script(browser, "arguments[0].click()", box)
    assert script(browser, width) <= room and (whole <= room or script(browser, width) < whole)
    script(browser, "arguments[0].click()", box)
    assert script(browser, width) == whole


def test_hovering_tells_of_an_operator(run, browser):
    from selenium.webdriver import ActionChains

    name = run.program.operators[0].name
    node = browser.find_element("css selector", f"#graph g.operator[data-operator='{name}'] rect")
    details = browser.find_element("id", "details")
    assert not details.is_displayed()
    script(browser, "arguments[0].scrollIntoView({block: 'center', inline: 'center'})", node)
    ActionChains(browser).move_to_element(node).perform()
    assert details.is_displayed() and name in details.text and "of all cycles" in details.text
    lit = script(browser, "[...document.querySelectorAll('.lit')].map(element => element.dataset.operator)")
    assert len(lit) > 1 and set(lit) == {name}


def test_nothing_is_asked_for_and_nothing_complained_of(browser, page):
    """Last: it reads the logs of all that went before."""
    assert [entry for entry in browser.get_log("browser") if entry["level"] in ("WARNING", "SEVERE")] == []
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = {message["params"]["request"]["url"] for message in messages
             if message["method"] == "Network.requestWillBeSent"}
    assert page.as_uri() in asked
    assert {url for url in asked if not url.startswith("data:")} == {page.as_uri()}

"""The HTML page: the data in it without a browser, and in a real one where Playwright and Chromium are installed."""

import json
import os
import re
import shutil
from dataclasses import replace

import pytest
from example_reports import all_kinds

from refsim.conformance import Report, Verdict
from refsim.conformance.reports import to_json, write
from refsim.conformance.verdicts import Cost, Deviation

CHROMIUM = os.environ.get("REFSIM_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
FAILING = '#grid button[aria-label^="rmsnorm norm_without_eps float32: FAIL"]'


def data_of(page):
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    return json.loads(text)


def test_the_page_holds_the_reports_and_nothing_from_elsewhere():
    page = write(all_kinds(), "html")
    assert data_of(page) == {"reports": [to_json(report) for report in all_kinds()]}
    assert re.findall(r"</script>", page) == ["</script>"] * 2
    assert "{{" not in page.replace(json.dumps(data_of(page)), "")
    assert "default-src 'none'" in page
    assert not re.findall(r"""(?:src|href)=|url\(|@import|fetch\(|XMLHttpRequest|https?://(?!www\.w3\.org/)""", page)


def test_braces_and_markup_of_the_judged_stay_data():
    report = Report("{{script}}</script><!--", "<script>", 0)
    (shown,) = data_of(write([report], "html"))["reports"]
    assert (shown["backend"], shown["device"]) == ("{{script}}</script><!--", "<script>")


@pytest.fixture(scope="module")
def browser():
    api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed: pip install playwright")
    if CHROMIUM is None:
        pytest.skip("no Chromium on PATH: apt-get install chromium, or set REFSIM_CHROMIUM")
    with api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture
def shown(browser, tmp_path):
    """The page in a browser without network; whatever it logs, raises or asks for fails the test."""
    path = tmp_path / "report.html"
    path.write_text(write(all_kinds(), "html"), encoding="utf-8")
    context = browser.new_context(offline=True)
    page = context.new_page()
    trouble = []
    page.on("console", lambda message: trouble.append(message.text))
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on("request", lambda request: None if request.url == path.as_uri() else trouble.append(request.url))
    page.goto(path.as_uri())
    yield page
    context.close()
    assert trouble == []


def cells(page):
    return [
        button.split(":")[0] for button in page.eval_on_selector_all("#grid button", "all => all.map(b => b.ariaLabel)")
    ]


def test_the_grid_shows_every_result_and_filters(shown):
    every = [
        "rmsnorm norm float32", "rmsnorm norm float16", "rmsnorm norm_without_eps float32",
        "rmsnorm norm_without_eps float16", "rmsnorm raising float32", "rmsnorm refusing float32",
        "rmsnorm racing float32", "sum sum_of_nans float32",
    ]  # fmt: skip
    assert cells(shown) == every
    shown.fill("#find", "NANS sum")
    assert cells(shown) == ["sum sum_of_nans float32"]
    assert shown.inner_text("#shown") == "1 of 8 results"
    shown.fill("#find", "")
    shown.select_option("#dtype", "float16")
    assert cells(shown) == ["rmsnorm norm float16", "rmsnorm norm_without_eps float16"]
    shown.select_option("#dtype", "")
    shown.select_option("#backend", "mine.py:racing on sim:sm_90")
    assert cells(shown) == ["rmsnorm racing float32"]
    shown.select_option("#backend", "")
    shown.click("#tally .PASS")
    shown.click("#tally .UNSUPPORTED")
    assert cells(shown) == [name for name in every if " norm " not in name and "refusing" not in name]
    shown.click("#tally .PASS")
    shown.click("#tally .UNSUPPORTED")
    assert cells(shown) == every


def test_a_failure_opens_its_detail(shown):
    shown.click(FAILING)
    report = all_kinds()[1]
    result = report.results[0]
    assert shown.inner_text("#detail h2") == "rmsnorm × norm_without_eps × float32"
    assert shown.locator("#detail details.failure").count() == len(result.failures)
    first = shown.locator("#detail details.failure").first
    assert first.get_attribute("open") is not None
    assert result.failures[0].message in first.inner_text()
    worst = result.failures[0].element
    assert float(first.locator(".near .worst").inner_text().strip("✗ ")) == pytest.approx(worst.got, rel=1e-8)
    assert first.locator(".near td").count() == sum(map(len, worst.around.got))
    assert first.locator(".near .outside").count() == sum(map(sum, worst.around.outside))
    assert first.locator(".command pre").inner_text() == to_json(report)["results"][0]["failures"][0]["command"]
    shown.click("#detail .all-cases summary")
    assert shown.locator("#detail .tried tbody tr").count() == len(result.tried) == 24


def test_every_case_has_the_command_that_the_json_has(shown):
    shown.click(FAILING)
    shown.click("#detail .all-cases summary")
    failing = next(i for i, tried in enumerate(all_kinds()[1].results[0].tried) if tried.verdict.value == "FAIL")
    row = shown.locator("#detail .tried tbody tr").nth(failing)
    row.get_by_role("button", name="command").click()
    wanted = to_json(all_kinds()[1])["results"][0]["failures"][0]["command"]
    assert row.locator(".command pre").inner_text().replace('":', '": ').replace(',"', ', "') == wanted


def test_the_histogram_counts_the_margins(shown):
    shown.click(FAILING)
    margins = [tried.margin for tried in all_kinds()[1].results[0].tried if tried.margin is not None]
    said = shown.get_attribute("#detail .margins svg", "aria-label")
    assert said.endswith(f"beyond the bound: {sum(margin > 1 for margin in margins)}")
    assert f"0.0 to 0.1: {sum(margin < 0.1 for margin in margins)}, " in said
    assert sum(map(int, re.findall(r": (\d+)", said))) == len(margins)


def test_no_text_of_a_histogram_lies_on_another(browser, tmp_path):
    report = all_kinds()[0]
    close = tuple(replace(tried, margin=0.95) for tried in report.results[0].tried)
    path = tmp_path / "report.html"
    path.write_text(write([replace(report, results=(replace(report.results[0], tried=close),))], "html"))
    page = browser.new_page()
    page.goto(path.as_uri())
    boxes = page.eval_on_selector_all(
        "#all-margins text", "all => all.map(t => t.getBBox()).map(b => [b.x, b.y, b.x + b.width, b.y + b.height])"
    )
    assert len(boxes) == 14  # a count, eleven labels, the bound, what the margin is
    for i, one in enumerate(boxes):
        for other in boxes[:i]:
            assert one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1], (one, other)
    page.close()


def test_a_finding_stands_at_its_line_of_source(shown):
    shown.click('#grid button[aria-label^="rmsnorm racing"]')
    hit = shown.locator("#detail .finding .hit").first
    assert "total[0] += x[cuda.blockIdx.x, cuda.threadIdx.x]" in hit.inner_text()
    note = shown.locator("#detail .finding .note").first.inner_text()
    assert "thread (" in note


def test_of_several_backends_each_part_says_whose_it_is(browser, tmp_path):
    kernels = [replace(report, costs=(Cost("doubled", "a table", "lines"),)) for report in all_kinds()[:2]]
    path = tmp_path / "report.html"
    path.write_text(write([kernels[0], replace(kernels[1], environment={"numpy": "1.0"})], "html"), encoding="utf-8")
    page = browser.new_page()
    page.goto(path.as_uri())
    names = [f"{report.backend} on {report.device}" for report in kernels]
    assert page.locator("#costs summary").all_inner_texts() == [f"doubled: {name}" for name in names]
    assert page.locator("#environment summary").all_inner_texts() == [f"Environment: {name}" for name in names]
    page.click(FAILING)
    assert f"{names[1]}; 24 cases" in page.inner_text("#detail")
    page.close()


def test_what_the_judged_say_is_text(shown):
    shown.click('#grid button[aria-label^="rmsnorm raising"]')
    assert "</script><b>no luck</b>" in shown.inner_text("#detail")
    assert shown.locator("#detail b").count() == 0


def test_the_keyboard_is_enough(shown):
    focused = "document.activeElement.ariaLabel ?? document.activeElement.id"
    shown.keyboard.press("/")
    assert shown.evaluate(focused) == "find"
    for _ in range(3):  # dtype, backend, grid
        shown.keyboard.press("Tab")
    assert shown.evaluate(focused).startswith("rmsnorm norm float32: PASS")
    shown.keyboard.press("ArrowDown")
    shown.keyboard.press("ArrowRight")
    assert shown.evaluate(focused).startswith("rmsnorm norm_without_eps float16: FAIL")
    shown.keyboard.press("ArrowDown")  # nothing below in this column
    assert shown.evaluate(focused).startswith("rmsnorm norm_without_eps float16: FAIL")
    shown.keyboard.press("Enter")
    assert shown.inner_text("#detail h2") == "rmsnorm × norm_without_eps × float16"
    assert shown.evaluate("document.activeElement.id") == "detail"
    shown.keyboard.press("Escape")
    assert shown.locator("#detail > *").count() == 0
    assert shown.evaluate(focused).startswith("rmsnorm norm_without_eps float16: FAIL")


CONTRAST = """() => {
  const light = (text) => {
    const [r, g, b] = text.match(/[\\d.]+/g).map(Number).map((c) => c / 255)
      .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    const paper = getComputedStyle(element).backgroundColor;
    return /, 0\\)$/.test(paper) ? behind(element.parentElement) : paper;
  };
  return [...document.querySelectorAll("p, summary, td, th, button, pre, dd, dt, label")]
    .filter((element) => element.checkVisibility() && element.innerText.trim())
    .map((element) => {
      const [one, other] = [light(getComputedStyle(element).color), light(behind(element))];
      return [(Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05), element.className || element.tagName];
    });
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark_can_be_read(shown, scheme):
    shown.emulate_media(color_scheme=scheme)
    shown.click(FAILING)
    ratios = shown.evaluate(CONTRAST)
    assert len(ratios) > 50
    assert min(ratios)[0] >= 4.5, min(ratios)  # WCAG 2.1, level AA
    paper = shown.evaluate("getComputedStyle(document.body).backgroundColor")
    assert paper == {"light": "rgb(255, 255, 255)", "dark": "rgb(18, 22, 27)"}[scheme]


@pytest.mark.parametrize("width", [360, 800, 1440])
def test_nothing_sticks_out_of_the_window(shown, width):
    shown.set_viewport_size({"width": width, "height": 800})
    for label in ("rmsnorm norm_without_eps float32", "rmsnorm racing", "rmsnorm raising"):
        shown.click(f'#grid button[aria-label^="{label}"]')
        assert shown.evaluate("document.documentElement.scrollWidth") <= width


def test_an_empty_report_says_so(browser, tmp_path):
    path = tmp_path / "empty.html"
    path.write_text(write([Report("b", "d", 0)], "html"), encoding="utf-8")
    page = browser.new_page()
    page.goto(path.as_uri())
    assert "nothing ran" in page.inner_text("#shown")
    page.close()


def test_known_deviations_are_listed_and_those_that_are_not_true_come_first(browser, tmp_path):
    passes = Deviation("known.toml, entry 1", ("sum",), "value", "<b>why</b>", "https://example.org", "2999-12-31")
    passes = replace(passes, asked=True, cases=3, deviating=2)
    failure = replace(all_kinds()[1].results[0].failures[0], verdict=Verdict.KNOWN, known=passes.told)
    row = replace(all_kinds()[1].results[0], verdict=Verdict.KNOWN, failures=(failure,))
    report = Report("mine", "host", 0, (row,), known=(passes, replace(passes, deviating=0)))
    path = tmp_path / "report.html"
    path.write_text(write([report], "html"), encoding="utf-8")
    page = browser.new_page()
    page.goto(path.as_uri())
    assert page.locator("#tally .KNOWN").inner_text() == "1 KNOWN"
    first, second = page.locator("#known .known").all_inner_texts()
    assert first.startswith("passes again sum, value: <b>why</b> (until 2999-12-31)")
    assert second.startswith("2 of 3 cases sum, value: <b>why</b>")
    page.click("#grid button")
    details = page.locator("#detail details.failure").inner_text()
    assert "Known: <b>why</b> (https://example.org, until 2999-12-31)" in details
    page.close()


def test_hostile_texts_are_shown_and_do_nothing(browser, tmp_path):
    evil = "<img src=x onerror=\"document.title='owned'\"></script><script>document.title='owned'</script>{{script}}"
    failure = replace(all_kinds()[1].results[0].failures[0], reason=evil, message=evil, detail=evil, known=evil)
    row = replace(
        all_kinds()[1].results[0], kernel=evil, numerics=evil, reason=evil, failures=(failure,), again=(evil,)
    )
    known = Deviation(evil, (evil,), "value", evil, "javascript:alert(1)", "2999-12-31", asked=True)
    report = Report(evil, evil, 0, (row,), {evil: evil}, (Cost(evil, evil, evil),), (known,))
    path = tmp_path / "report.html"
    path.write_text(write([report], "html"), encoding="utf-8")
    page = browser.new_page()
    trouble = []
    page.on("console", lambda message: trouble.append(message.text))
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.goto(path.as_uri())
    page.click("#grid button")
    page.click("#detail .all-cases summary")
    page.click("#detail .tried button")
    assert trouble == []
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 2
    assert page.title().startswith("refsim report: <img")
    assert evil in page.locator("#detail").inner_text()
    assert page.locator("a").count() == 0
    page.close()

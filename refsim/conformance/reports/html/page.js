"use strict";
// Shows the reports in the element #data. All text goes in as text, never as markup.

const VERDICTS = ["FAIL", "ERROR", "SUSPECT", "INCONCLUSIVE", "UNSUPPORTED", "KNOWN", "PASS"];
const reports = JSON.parse(document.getElementById("data").textContent).reports;
const at = (id) => document.getElementById(id);

/** An element with attributes (on… are listeners) and children; null children are left out. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null) element.setAttribute(name, value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null));
  return element;
}

function drawn(tag, attributes, text) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

const unique = (values) => [...new Set(values)];
const short = (number) => (typeof number === "number" ? String(Number(number.toPrecision(3))) : String(number));
const precise = (number) => (typeof number === "number" ? String(Number(number.toPrecision(9))) : String(number));
const badge = (verdict) => make("span", { class: `badge ${verdict}` }, verdict);

function caseText(given) {
  const sizes = Object.entries(given.dims).map(([name, size]) => `${name}=${size}`);
  const params = Object.entries(given.params ?? {}).map(([name, value]) => `${name}=${JSON.stringify(value)}`);
  const absent = (given.absent ?? []).map((name) => `without ${name}`);
  const parts = [[...sizes, ...params, ...absent].join(" "), given.value_class, given.layout, `seed ${given.seed}`];
  return parts.filter(Boolean).join(" · ");
}

/** The command of a shell that runs a case again, of the words that the result has for it. */
function commandFor(result, given) {
  const quoted = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`);
  return result.again.map((word) => quoted(word === "{case}" ? JSON.stringify(given) : word)).join(" ");
}

// ---- margins

/** How many margins lie in each tenth of what is allowed, and how many beyond it. */
function binned(margins) {
  const bins = Array(10).fill(0);
  let beyond = 0;
  for (const margin of margins) {
    if (typeof margin === "number" && margin <= 1) bins[Math.min(9, Math.floor(margin * 10))] += 1;
    else beyond += 1;
  }
  return { bins, beyond };
}

function histogram(margins, title) {
  const { bins, beyond } = binned(margins);
  const [step, height, top] = [44, 90, 32];  // room above the bars for a count, and above that for the name of the bound
  const most = Math.max(1, ...bins, beyond);
  const said = bins.map((count, i) => `${(i / 10).toFixed(1)} to ${((i + 1) / 10).toFixed(1)}: ${count}`);
  const picture = drawn("svg", {
    viewBox: `-8 0 ${step * 11 + 38} ${height + top + 34}`, width: step * 11 + 38, role: "img",
    "aria-label": `${title}. ${said.join(", ")}, beyond the bound: ${beyond}`,
  });
  [...bins, beyond].forEach((count, i) => {
    const tall = (count / most) * height;
    const x = i * step + (i === 10 ? 22 : 8);
    const bar = { x, y: top + height - tall, width: step - 6, height: tall, class: i === 10 ? "over" : "bar" };
    picture.append(drawn("rect", bar));
    if (count) picture.append(drawn("text", { x: x + 19, y: top + height - tall - 4, "text-anchor": "middle" }, count));
    const label = i === 10 ? "beyond" : (i / 10).toFixed(1);
    const place = i === 10 ? { x: x + 19, "text-anchor": "middle" } : { x: x - 3, "text-anchor": "middle" };
    picture.append(drawn("text", { ...place, y: top + height + 15 }, label));
  });
  const edge = 10 * step + 8 + 3;
  picture.append(
    drawn("line", { x1: 5, x2: step * 11 + 22, y1: top + height, y2: top + height, class: "axis" }),
    drawn("line", { x1: edge, x2: edge, y1: 4, y2: top + height, class: "limit" }),
    drawn("text", { x: edge - 5, y: 12, "text-anchor": "end" }, "bound"),
    drawn("text", { x: 5, y: top + height + 30 }, "worst margin of a case: its error over what is allowed"),
  );
  return make("div", { class: "margins" }, make("h3", {}, title), picture);
}

const marginsOf = (result) => result.tried.map((tried) => tried.margin).filter((margin) => margin !== null);

// ---- the grid

const rows = [];  // one per backend, operator and kernel; its results by dtype
for (const report of reports) {
  for (const result of report.results) {
    const same = (row) =>
      row.report === report && row.operator === result.operator && row.kernel === result.kernel;
    let row = rows.find(same);
    if (!row) rows.push((row = { report, operator: result.operator, kernel: result.kernel, results: new Map() }));
    row.results.set(result.dtype, result);
  }
}
const dtypes = unique(rows.flatMap((row) => [...row.results.keys()]));
const operators = unique(rows.map((row) => row.operator));
rows.sort((one, other) => operators.indexOf(one.operator) - operators.indexOf(other.operator));
const backendOf = (report) => `${report.backend} on ${report.device}`;
const backends = unique(reports.map(backendOf));
const hidden = new Set();  // verdicts that are not shown
let current = null;  // the result whose details are open

function chosen() {
  const words = at("find").value.toLowerCase().split(/\s+/).filter(Boolean);
  const [dtype, backend] = [at("dtype").value, at("backend").value];
  const columns = dtype ? [dtype] : dtypes;
  const visible = rows.filter((row) => {
    const name = `${row.operator} ${row.kernel}`.toLowerCase();
    if (backend && backendOf(row.report) !== backend) return false;
    if (!words.every((word) => name.includes(word))) return false;
    return columns.some((column) => row.results.has(column) && !hidden.has(row.results.get(column).verdict));
  });
  return { columns, visible };
}

function cell(result) {
  const margin = result.worst_margin === null ? "–" : short(result.worst_margin);
  const said = `${result.operator} ${result.kernel} ${result.dtype}: ${result.verdict}, worst margin ${margin}`;
  const button = make(
    "button",
    { type: "button", class: result.verdict, tabindex: "-1", "aria-label": said, title: result.reason || null },
    make("span", {}, result.verdict),
    make("span", { class: "margin" }, margin),
  );
  button.result = result;
  if (result === current) button.setAttribute("aria-current", "true");
  return button;
}

function showGrid() {
  const { columns, visible } = chosen();
  const several = backends.length > 1;
  const names = [several ? "operator, kernel, backend" : "operator, kernel", ...columns];
  const head = make("thead", {}, make("tr", {}, names.map((name) => make("th", { scope: "col" }, name))));
  const body = make("tbody");
  let before = null;
  let count = 0;
  const margins = [];
  for (const row of visible) {
    const first = row.operator !== before;
    before = row.operator;
    const line = make(
      "tr",
      { class: first ? "first" : null },
      make(
        "th",
        { scope: "row" },
        make("span", { class: first ? null : "again" }, row.operator),
        make("span", { class: "kernel" }, ` ${row.kernel}`),
        several ? make("span", { class: "backend" }, backendOf(row.report)) : null,
      ),
    );
    for (const column of columns) {
      const result = row.results.get(column);
      const shows = result && !hidden.has(result.verdict);
      if (shows) {
        count += 1;
        margins.push(...marginsOf(result));
      }
      line.append(make("td", {}, shows ? cell(result) : null));
    }
    body.append(line);
  }
  at("grid").replaceChildren(head, body);
  const cells = [...at("grid").querySelectorAll("button")];
  const start = cells.find((button) => button.result === current) ?? cells[0];
  if (start) start.tabIndex = 0;
  const total = rows.reduce((sum, row) => sum + row.results.size, 0);
  at("shown").textContent = total ? `${count} of ${total} results` : "nothing ran: the backend serves nothing of it";
  at("all-margins").replaceChildren(histogram(margins, "Margins of all cases of the results shown"));
}

function moveInGrid(event) {
  const from = event.target.closest("button");
  const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
  if (!from || !step) return;
  event.preventDefault();
  const lines = [...at("grid").tBodies[0].rows].map((line) => [...line.cells].map((one) => one.querySelector("button")));
  let y = lines.findIndex((line) => line.includes(from));
  let x = lines[y].indexOf(from);
  do {
    y += step[0];
    x += step[1];
  } while (lines[y] && x in lines[y] && !lines[y][x]);
  const to = lines[y]?.[x];
  if (!to) return;
  from.tabIndex = -1;
  to.tabIndex = 0;
  to.focus();
}

// ---- the details of one result

function copyable(text) {
  const code = make("pre", {}, text);
  const copy = async (event) => {
    try {
      await navigator.clipboard.writeText(text);
      event.target.textContent = "copied";
    } catch {
      getSelection().selectAllChildren(code);
      event.target.textContent = "selected";
    }
  };
  return make("div", { class: "command" }, code, make("button", { type: "button", onclick: copy }, "copy"));
}

function neighbourhood(element) {
  const { start, got, low, high, outside } = element.around;
  const [row, column] = [0, 0, ...start].slice(-2);
  const here = [0, 0, ...element.index].slice(-2);
  const head = make("tr", {}, make("th", {}, ""), got[0].map((_, x) => make("th", { scope: "col" }, String(column + x))));
  const body = got.map((line, y) => {
    const cells = line.map((value, x) => {
      const worst = row + y === here[0] && column + x === here[1];
      const kinds = [outside[y][x] ? "outside" : "", worst ? "worst" : ""].filter(Boolean).join(" ");
      const accepted = `accepted: ${precise(low[y][x])} … ${precise(high[y][x])}`;
      return make("td", { class: kinds || null, title: accepted }, precise(value));
    });
    return make("tr", {}, make("th", { scope: "row" }, String(row + y)), cells);
  });
  const frame = make("div", { class: "scroll", tabindex: "0" }, make("table", { class: "near" }, head, body));
  return make(
    "div",
    {},
    make("h3", {}, "Around the worst element"),
    make("p", { class: "quiet" }, "What was returned; ✗ is not accepted. Rows and columns are the last two indices."),
    frame,
  );
}

/** Scroll a table sideways so that one cell is in the middle. */
function centre(cell) {
  const frame = cell?.closest(".scroll");
  if (frame) frame.scrollLeft = cell.offsetLeft - (frame.clientWidth - cell.offsetWidth) / 2;
}

function worstElement(element) {
  const facts = [
    ["element", `${element.output}[${element.index.join(", ")}]`],
    ["returned", String(element.got)],
    ["accepted", element.low === element.high ? String(element.low) : `${element.low} … ${element.high}`],
    ["rule", element.rule],
  ];
  return make("dl", {}, facts.map(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));
}

function source(place) {
  const lines = place.lines.flatMap(({ number, text }) => {
    const hit = number === place.line;
    const line = make("tr", { class: hit ? "hit" : null }, make("td", {}, String(number)), make("td", {}, text));
    return hit ? [line, make("tr", { class: "note" }, make("td", {}, "↑"), make("td", {}, place.what))] : [line];
  });
  const where = `${place.file}:${place.line}`;
  const shown = lines.length ? make("table", { class: "source" }, lines) : make("p", {}, place.what);
  return [make("p", {}, make("code", {}, where)), make("div", { class: "scroll", tabindex: "0" }, shown)];
}

function finding(found) {
  const title = `${found.severity}: ${found.kind.replaceAll("_", " ")}`;
  return make("div", { class: "finding" }, make("h3", {}, title), make("p", {}, found.message), found.places.map(source));
}

function failureDetails(failure, open) {
  const parts = [make("p", {}, failure.message)];
  if (failure.known) parts.unshift(make("p", {}, `Known: ${failure.known}`));
  if (failure.element) parts.push(worstElement(failure.element), neighbourhood(failure.element));
  parts.push(...failure.findings.map(finding));
  if (failure.detail && !failure.findings.length) parts.push(make("pre", { tabindex: "0" }, failure.detail.trimEnd()));
  parts.push(make("h3", {}, "Run it again"), copyable(failure.command));
  const title = make("summary", {}, badge(failure.verdict), ` ${failure.reason} · ${caseText(failure.case)}`);
  const details = make("details", { class: "failure", open: open ? "" : null }, title, parts);
  details.addEventListener("toggle", () => centre(details.querySelector(".near .worst")));
  return details;
}

function triedTable(result) {
  const head = ["verdict", "margin", "case", ""].map((name) => make("th", { scope: "col" }, name));
  const body = result.tried.map((tried) => {
    const line = make("tr");
    const more = make("button", { type: "button" }, "command");
    more.addEventListener("click", () => more.replaceWith(copyable(commandFor(result, tried.case))));
    const note = tried.note ? make("div", { class: "quiet" }, tried.note) : null;
    line.append(
      make("td", {}, badge(tried.verdict)),
      make("td", { class: "number" }, tried.margin === null ? "–" : short(tried.margin)),
      make("td", {}, caseText(tried.case), note),
      make("td", {}, result.again.length ? more : null),
    );
    return line;
  });
  const table = make("table", { class: "tried" }, make("thead", {}, make("tr", {}, head)), make("tbody", {}, body));
  const title = make("summary", {}, `All ${result.tried.length} cases`);
  return make("details", { class: "all-cases" }, title, make("div", { class: "scroll" }, table));
}

function open(result, focus = true) {
  current = result;
  for (const button of at("grid").querySelectorAll("button")) {
    if (button.result === result) button.setAttribute("aria-current", "true");
    else button.removeAttribute("aria-current");
  }
  const refused = result.refused ? `, ${result.refused} refused` : "";
  const unclear = result.inconclusive ? `, ${result.inconclusive} inconclusive` : "";
  const failed = result.failures.length;
  const { report } = rows.find((row) => row.results.get(result.dtype) === result);
  const by = backends.length > 1 ? `${backendOf(report)}; ` : "";
  const close = make("button", { type: "button", onclick: shut, "aria-label": "Close details" }, "close");
  at("detail").replaceChildren(
    make("div", { class: "title" }, make("h2", {}, `${result.operator} × ${result.kernel} × ${result.dtype}`), close),
    make("p", {}, badge(result.verdict), " ", result.reason),
    make("p", { class: "quiet" }, `${by}${result.cases} cases${refused}${unclear}; promised numerics: ${result.numerics}`),
    histogram(marginsOf(result), "Margins of the cases"),
    ...(failed ? [make("h3", {}, `${failed} of ${result.cases} cases did not pass`)] : []),
    ...result.failures.map((failure, i) => failureDetails(failure, i === 0)),
    ...(result.tried.length ? [triedTable(result)] : []),
  );
  at("detail").scrollTop = 0;
  if (focus) {
    at("detail").focus({ preventScroll: true });
    at("detail").scrollIntoView({ block: "nearest" });
  }
}

function shut() {
  const from = [...at("grid").querySelectorAll("button")].find((button) => button.result === current);
  current = null;
  from?.removeAttribute("aria-current");
  at("detail").replaceChildren();
  (from ?? at("find")).focus();
}

// ---- the page

/** The list of known deviations; entries that are not true any more come first. */
function showKnown(entries) {
  if (!entries.length) return;
  const told = (entry) => {
    const state = entry.problem || (entry.asked ? `${entry.deviating} of ${entry.cases} cases` : "not judged here");
    const kind = entry.problem ? "FAIL" : "KNOWN";
    const about = ` ${entry.operator.join(", ")}, ${entry.kind}: ${entry.reason} (until ${entry.expires}) `;
    const source = make("span", { class: "quiet" }, `${entry.link} · ${entry.where}`);
    return make("p", { class: "known" }, make("span", { class: `badge ${kind}` }, state), about, source);
  };
  const sorted = [...entries].sort((one, other) => Boolean(other.problem) - Boolean(one.problem));
  at("known").append(make("h3", {}, "Known deviations"), ...sorted.map(told));
}

function showFrame() {
  const seeds = unique(reports.map((report) => report.seed)).join(", ");
  const who = backends.length > 2 ? `${backends.length} backends` : backends.join("; ");
  at("who").textContent = `${who} · seed ${seeds}`;
  document.title = `refsim report: ${who}`;
  const counts = Object.fromEntries(VERDICTS.map((verdict) => [verdict, 0]));
  for (const row of rows) for (const result of row.results.values()) counts[result.verdict] += 1;
  for (const verdict of VERDICTS.filter((one) => counts[one])) {
    const button = make("button", { type: "button", class: verdict, "aria-pressed": "true" }, `${counts[verdict]} ${verdict}`);
    button.addEventListener("click", () => {
      if (!hidden.delete(verdict)) hidden.add(verdict);
      button.setAttribute("aria-pressed", String(!hidden.has(verdict)));
      showGrid();
    });
    at("tally").append(button);
  }
  const options = (names) => [["", "all"], ...names.map((name) => [name, name])];
  for (const [id, names] of [["dtype", dtypes], ["backend", backends]])
    at(id).append(...options(names).map(([value, text]) => make("option", { value }, text)));
  at("backend-label").hidden = backends.length < 2;
  showKnown(reports.flatMap((report) => report.known));
  const of = (names, title) => (backends.length > 1 ? `${title}: ${names.join("; ")}` : title);
  if (reports.some((report) => report.counters.length)) at("costs").append(make("h3", {}, "Counters"));
  for (const report of reports)
    for (const cost of report.counters) {
      const table = make("pre", { tabindex: "0" }, `${cost.table}\n\n${cost.lines}`);
      at("costs").append(make("details", {}, make("summary", {}, of([backendOf(report)], cost.kernel)), table));
    }
  for (const environment of unique(reports.map((report) => JSON.stringify(report.environment)))) {
    const made = reports.filter((report) => JSON.stringify(report.environment) === environment);
    const names = unique(made.map(backendOf));
    const facts = Object.entries({ backend: names.join("; "), ...JSON.parse(environment) });
    const list = make("dl", {}, facts.map(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));
    at("environment").append(make("details", {}, make("summary", {}, of(names, "Environment")), list));
  }
}

showFrame();
showGrid();
at("filters").addEventListener("input", showGrid);
at("filters").addEventListener("submit", (event) => event.preventDefault());
at("grid").addEventListener("keydown", moveInGrid);
at("grid").addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (button) open(button.result);
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && current) shut();
  if (event.key === "/" && !event.target.closest("input, select")) {
    event.preventDefault();
    at("find").focus();
  }
});

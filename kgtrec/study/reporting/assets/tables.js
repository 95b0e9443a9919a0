// Tables that are sorted and searched as arrays; only the rows of one page are ever elements.

const PAGE = 25, PRINTED = 500;

function make(name, attributes, ...children) {
  const element = document.createElement(name);
  for (const key in attributes) {
    if (key === "class") element.className = attributes[key];
    else if (key.startsWith("on")) element.addEventListener(key.slice(2), attributes[key]);
    else if (attributes[key] !== undefined) element.setAttribute(key, attributes[key]);
  }
  element.append(...children.filter(child => child !== undefined && child !== null));
  return element;
}

// Labels keep their own direction of writing: marks of direction in them change nothing around.
const isolated = text => make("bdi", {}, text);

// A long label keeps its ends: styles cut its first part where it is too wide. Its text stays whole.
const LONG = 40, TAIL = 16;
function label(text) {
  const signs = [...text];
  if (signs.length <= LONG) return isolated(text);
  return make("bdi", { class: "cut", "data-tip": text }, make("span", {}, signs.slice(0, -TAIL).join("")), make("span", {}, signs.slice(-TAIL).join("")));
}

// A number as Python prints it: the decimal nearest to its exact value, and the even one of two that are equally near.
function rounded(value, digits) {
  const size = Math.abs(value), binary = size * 2 ** (digits + 1), twice = binary * 5 ** digits;
  let text = size.toFixed(digits);
  if (Number.isInteger(binary) && twice < 2 ** 53 && twice % 4 === 1) text = ((twice - 1) / 2 / 10 ** digits).toFixed(digits);
  const [whole, part] = text.split(".");
  return (value < 0 ? "-" : "") + whole.replace(/\B(?=(\d{3})+$)/g, ",") + (part ? `.${part}` : "");
}

const shown = (value, digits) => value === null || value === undefined ? "–"
  : typeof value !== "number" ? String(value) : value === 0 ? "0" : rounded(value, digits);

// Ranks are whole numbers or, in the middle of ties, halves.
const rankText = value => value === null ? "–" : rounded(value, Number.isInteger(value) ? 0 : 1);
const smallText = value => value !== null && value < 1e-5 ? "< 0.00001" : shown(value, 5);

// A value that is known to lie between two ends: both, or one number where they are printed alike.
function printed(column, row) {
  const ends = column.ends && column.ends(row);
  if (column.print) return column.print(column.get(row));
  return ends ? [...new Set(ends.map(end => shown(end, column.digits)))].join("–") : shown(column.get(row), column.digits ?? 0);
}

function download(name, text, type) {
  const link = make("a", { href: URL.createObjectURL(new Blob([text], { type })), download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// A cell that a spreadsheet would take for a formula gets an apostrophe.
function csv(rows) {
  const cell = value => {
    let text = value === null || value === undefined ? "" : String(value);
    if (typeof value === "string" && /^[=+\-@\t\r]/.test(text)) text = `'${text}`;
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return rows.map(row => row.map(cell).join(",")).join("\n") + "\n";
}

// A word with its definition, shown on pointing and on focus, and read out.
let terms = 0;
function term(text, definition, focusable = true) {
  if (!definition) return document.createTextNode(text);
  const id = `term-${terms++}`;
  return make("span", { class: "term", tabindex: focusable ? "0" : undefined, "data-tip": definition, "aria-describedby": id },
    text, make("span", { id, hidden: "" }, definition));
}

function tooltips() {
  const tip = document.getElementById("tip");
  const show = event => {
    const target = event.target.closest && event.target.closest("[data-tip]");
    if (!target) { tip.hidden = true; return; }
    tip.textContent = target.dataset.tip;
    tip.hidden = false;
    const box = target.getBoundingClientRect(), width = document.documentElement.clientWidth;
    tip.style.left = `${Math.max(8, Math.min(box.left, width - tip.offsetWidth - 8)) + scrollX}px`;
    const above = box.bottom + tip.offsetHeight + 8 > innerHeight && box.top > tip.offsetHeight + 8;
    tip.style.top = `${(above ? box.top - tip.offsetHeight - 6 : box.bottom + 6) + scrollY}px`;
  };
  document.addEventListener("mouseover", show);
  document.addEventListener("focusin", show);
  document.addEventListener("keydown", event => { if (event.key === "Escape") tip.hidden = true; });
}

// Marks the best and second best of a row's numbers, as printed: "best", "second" or "" for each.
function places(texts, higher) {
  if (higher === null || higher === undefined) return texts.map(() => "");
  const numbers = texts.map(text => text === "–" ? null : Number(text.replaceAll(",", "")));
  if (numbers.some(Number.isNaN)) return texts.map(() => ""); // ends of what is open have no order
  const distinct = [...new Set(numbers.filter(n => n !== null))].sort((a, b) => higher ? b - a : a - b);
  if (distinct.length < 2) return texts.map(() => "");
  const second = numbers.filter(n => n === distinct[0]).length === 1;
  return numbers.map(n => n === distinct[0] ? "best" : second && n === distinct[1] ? "second" : "");
}

// What every table does before and after printing.
const printing = [];

// A shade at the side to which a table goes on, and a sentence as long as it is wider than its place.
function cue(frame, scroll, hint) {
  const update = () => {
    const beyond = scroll.scrollWidth - scroll.clientWidth;
    hint.hidden = beyond <= 1;
    frame.classList.toggle("more-left", scroll.scrollLeft > 1);
    frame.classList.toggle("more-right", scroll.scrollLeft < beyond - 1);
  };
  scroll.addEventListener("scroll", update);
  const observer = new ResizeObserver(update);
  observer.observe(scroll);
  observer.observe(scroll.firstChild);
}

// columns: [{title, definition, text: is it text, get: row => value, digits, tip, model: is it one of those compared,
// ends: row => [low, high] of a value that is open, or null, print: value => text, mark: row => element before the text}]
function dataTable(place, options) {
  const state = { columns: options.columns, order: null, sorted: options.sorted ?? null, descending: options.descending ?? true, start: 0, query: "", higher: options.higher };
  const body = make("tbody", {}), head = make("thead", {}), count = make("span", { role: "status", "aria-live": "polite" });
  const table = make("table", {}, make("caption", {}, make("span", {}, options.caption || options.label)), head, body);
  const scroll = make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `Table: ${options.label}` }, table);
  const back = make("button", { type: "button", onclick: () => turn(-1) }, "Previous"), forth = make("button", { type: "button", onclick: () => turn(1) }, "Next");
  const pager = make("div", { class: "pager" }, back, forth, count);
  const controls = make("div", { class: "controls" }, ...(options.controls || []));
  if (options.search) {
    controls.append(make("label", {}, options.search, make("input", { type: "search", autocomplete: "off", spellcheck: "false", oninput: event => { state.query = event.target.value.toLowerCase(); state.start = 0; arrange(); } })));
  }
  controls.append(make("button", { type: "button", class: "csv", onclick: save }, "Download CSV"));
  const frame = make("div", { class: "frame" }, scroll), hint = make("p", { class: "hint", hidden: "" }, "Scroll sideways for more columns.");
  place.append(controls, hint, frame, pager);
  cue(frame, scroll, hint);
  const searched = options.search && Array.from({ length: options.rows }, (_, row) => String(options.columns[0].get(row)).toLowerCase());

  function save() {
    const rows = Array.from({ length: options.rows }, (_, row) => state.columns.map(column => column.ends?.(row)?.join(" to ") ?? column.get(row)));
    download(`${options.file}.csv`, csv([state.columns.map(column => column.title), ...rows]), "text/csv");
  }
  function turn(by) { state.start += by * PAGE; render(); scroll.focus(); }
  function sortBy(number) {
    if (state.sorted === number) state.descending = !state.descending;
    else { state.sorted = number; state.descending = !state.columns[number].text; }
    state.start = 0;
    arrange();
  }
  function arrange() {
    let rows = Array.from({ length: options.rows }, (_, row) => row);
    if (state.query) rows = rows.filter(row => searched[row].includes(state.query));
    const column = state.columns[state.sorted];
    if (column) {
      const values = new Map(rows.map(row => [row, column.get(row)])), sign = state.descending ? -1 : 1;
      rows.sort((a, b) => {
        const x = values.get(a), y = values.get(b);
        if (x === null || y === null) return (x === null) - (y === null) || a - b; // absent ones last
        return (typeof x === "string" ? (x < y ? -1 : x > y ? 1 : 0) : x - y) * sign || a - b;
      });
    }
    state.order = rows;
    headings();
    render();
  }
  function headings() {
    const cells = state.columns.map((column, number) => {
      const name = column.name ? isolated(column.title) : column.title;
      const inner = options.sortable === false ? (column.definition ? term(column.title, column.definition) : name)
        : make("button", { type: "button", "data-tip": column.definition, "aria-description": column.definition, onclick: () => { sortBy(number); head.querySelectorAll("button")[number].focus(); } }, name);
      return make("th", { scope: "col", class: (column.text ? "text" : "") + (column.name ? " name" : "") + (column.name && column.title.length > 20 ? " long" : ""), "aria-sort": options.sortable !== false && number === state.sorted ? (state.descending ? "descending" : "ascending") : undefined }, inner);
    });
    head.replaceChildren(...(options.groups ? [groupLine(options.groups)] : []), make("tr", {}, ...cells));
  }
  function render() {
    const start = state.printed ? 0 : state.start, part = state.order.slice(start, start + (state.printed ? PRINTED : PAGE));
    body.replaceChildren(...part.map(rowOf));
    const first = part.length ? start + 1 : 0, last = start + part.length, all = state.order.length;
    const missing = state.printed && all > PRINTED ? `; ${rounded(all - PRINTED, 0)} more are in the file of "Download CSV"` : "";
    count.textContent = all > PAGE || state.query ? `${rounded(first, 0)} to ${rounded(last, 0)} of ${rounded(all, 0)}${missing}` : "";
    back.disabled = state.start === 0;
    forth.disabled = last >= state.order.length;
    back.hidden = forth.hidden = state.order.length <= PAGE;
  }
  function rowOf(row) {
    const texts = state.columns.map(column => printed(column, row));
    const compared = state.columns.map((column, number) => column.model ? number : -1).filter(number => number >= 0);
    const marks = options.across === false ? [] : places(compared.map(number => texts[number]), state.higher);
    return make("tr", {}, ...state.columns.map((column, number) => {
      const text = texts[number], mark = options.across === false ? (options.mark ? options.mark(row, number) : "") : marks[compared.indexOf(number)] || "";
      if (number === 0) return make("th", { scope: "row" }, column.mark && column.mark(row), label(text));
      const spoken = mark === "best" ? "best" : mark === "second" ? "second best" : undefined;
      return make("td", { class: `${column.text ? "text" : ""} ${mark}`.trim(), "data-tip": column.tip, "aria-description": spoken }, column.text ? label(text) : text);
    }));
  }
  arrange();
  printing.push(printed => { state.printed = printed; render(); });
  return {
    update(columns, higher) { state.columns = columns; state.higher = higher; arrange(); },
    state, sortBy,
  };
}

function groupLine(groups) {
  return make("tr", {}, ...groups.map(([text, size]) => text ? make("th", { scope: "colgroup", colspan: size, class: "group" }, text) : make("td", { colspan: size })));
}

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

// A label is on one line and loses its middle only if the table has no space for it (`fitLabels`). Its text stays whole.
// On narrow screens and on paper it has several lines, which break after signs.
const label = text => make("bdi", { class: "label" }, ...breakable(text));

const pieces = text => text.split(/(?<=[-/…]|[.,] |_(?=.{12}))/);
const breakable = text => pieces(text).flatMap((part, i) => i ? [document.createElement("wbr"), part] : [part]);

// Show a label in a width: its first and last letters, with the others between them out of sight. Return what is seen.
function cutLabel(element, width, font) {
  const text = element.textContent, signs = [...text];
  element.classList.remove("whole");
  if (widthOf(text, font) <= width) {
    element.replaceChildren(...breakable(text));
    delete element.dataset.tip;
    return text;
  }
  let fits = 2, above = signs.length;
  const ends = n => [signs.slice(0, Math.floor(n / 2)).join(""), signs.slice(signs.length - Math.ceil(n / 2)).join("")];
  while (above - fits > 1) {
    const n = (fits + above) >> 1;
    if (widthOf(ends(n).join("…"), font) <= width) fits = n; else above = n;
  }
  const [start, end] = ends(fits), middle = signs.slice(Math.floor(fits / 2), signs.length - Math.ceil(fits / 2)).join("");
  element.dataset.tip = text;
  element.replaceChildren(start, make("span", { class: "gone" }, middle), make("span", { class: "end" }, end));
  return ends(fits).join("…");
}

// Labels whose ends are equal show all of their text, on several lines.
function cutLabels(labels, widths, font) {
  const seen = new Map();
  labels.forEach((element, i) => {
    const ends = cutLabel(element, widths[i], font);
    if (!seen.has(ends)) seen.set(ends, []);
    seen.get(ends).push(element);
  });
  for (const alike of seen.values()) {
    if (new Set(alike.map(element => element.textContent)).size < 2) continue;
    alike.forEach(element => { cutLabel(element, Infinity, font); element.classList.add("whole"); });
  }
}

// Labels are not cut below this width in pixels, or below the second one if the table has to scroll anyway.
const LEAST_LABEL = 190, SCROLLED_LABEL = 320, LINES = 3;

// Give the labels of a table the space that its numbers leave: the widest columns of labels lose first.
function fitLabels(scroll, table) {
  const labels = [...table.querySelectorAll("tbody .label")];
  if (!labels.length || !scroll.clientWidth) return;
  const narrow = scroll.clientWidth < NARROW, columns = new Map(), of = element => element.closest("td, th").cellIndex;
  table.classList.toggle("narrow", narrow);
  const style = getComputedStyle(labels[0]), font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
  for (const element of labels) columns.set(of(element), Math.max(columns.get(of(element)) || 0, Math.ceil(widthOf(element.textContent, font)) + 4));
  labels.forEach(element => { element.style.width = ""; cutLabel(element, Infinity, font); });
  if (narrow) { // labels have several lines
    const most = Math.floor(scroll.clientWidth * 0.48);
    labels.forEach(element => { element.style.width = `${Math.min(columns.get(of(element)), most)}px`; });
    cutLabels(labels, labels.map(() => most * (LINES - 0.3)), font);
    return;
  }
  let beyond = table.offsetWidth - scroll.clientWidth;
  const most = [...columns.values()].reduce((sum, width) => sum + Math.max(0, width - LEAST_LABEL), 0);
  const least = most < beyond ? SCROLLED_LABEL : LEAST_LABEL;
  while (beyond > 0) {
    const [widest, width] = [...columns].reduce((a, b) => b[1] > a[1] ? b : a);
    const next = Math.max(least, ...[...columns.values()].filter(each => each < width)), less = Math.min(beyond, width - next);
    if (width <= least) break;
    columns.set(widest, width - Math.max(less, 1));
    beyond -= Math.max(less, 1);
  }
  for (const element of labels) element.style.width = `${columns.get(of(element))}px`;
  cutLabels(labels, labels.map(element => columns.get(of(element))), font);
}

// A number as Python prints it: the decimal nearest to its exact value, and the even one of two that are equally near.
function rounded(value, digits) {
  const size = Math.abs(value), binary = size * 2 ** (digits + 1), twice = binary * 5 ** digits;
  let text = size.toFixed(digits);
  if (Number.isInteger(binary) && twice < 2 ** 53 && twice % 4 === 1) text = ((twice - 1) / 2 / 10 ** digits).toFixed(digits);
  const [whole, part] = text.split(".");
  return (value < 0 ? "-" : "") + whole.replace(/\B(?=(\d{3})+$)/g, ",") + (part ? `.${part}` : "");
}

// Zero is "0"; what is only rounded to it is "≈0".
function shown(value, digits) {
  if (value === null || value === undefined) return "–";
  if (typeof value !== "number") return String(value);
  const text = rounded(value, digits);
  return Number(text) !== 0 ? text : Math.abs(value) < NOISE ? "0" : "≈0";
}
const NOISE = 1e-12;

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
  const numbers = texts.map(text => text === "–" ? null : Number(text.replaceAll(",", "").replace("≈", "")));
  if (numbers.some(Number.isNaN)) return texts.map(() => ""); // ends of what is open have no order
  const distinct = [...new Set(numbers.filter(n => n !== null))].sort((a, b) => higher ? b - a : a - b);
  if (distinct.length < 2) return texts.map(() => "");
  const second = numbers.filter(n => n === distinct[0]).length === 1;
  return numbers.map(n => n === distinct[0] ? "best" : second && n === distinct[1] ? "second" : "");
}

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

// columns: [{title, head: heading if it is another, definition, text: is it text, get: row => value, digits, tip, name: is
// the heading a name, model: is it one of those compared, ends: row => [low, high] of a value that is open, or null, print:
// value => text, show: (text, row) => element}]
function dataTable(place, options) {
  const state = { columns: options.columns, order: null, sorted: options.sorted ?? null, descending: options.descending ?? true, start: 0, query: "", higher: options.higher };
  const body = make("tbody", {}), head = make("thead", {}), count = make("span", { role: "status", "aria-live": "polite" });
  const caption = make("span", {}, options.caption || options.label);
  const table = make("table", {}, make("caption", {}, caption), head, body);
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
      const text = column.head ?? column.title, name = column.name ? make("bdi", {}, ...breakable(text)) : text;
      const inner = options.sortable === false ? (column.definition ? term(text, column.definition) : name)
        : make("button", { type: "button", "data-tip": column.definition, "aria-description": column.definition, onclick: () => { sortBy(number); head.querySelectorAll("button")[number].focus(); } }, name);
      return make("th", { scope: "col", class: (column.text ? "text" : "") + (column.name ? " name" : "") + (column.name && text.length > 14 ? " long" : ""), "aria-sort": options.sortable !== false && number === state.sorted ? (state.descending ? "descending" : "ascending") : undefined }, inner);
    });
    head.replaceChildren(...(options.groups ? [groupLine(options.groups)] : []), make("tr", {}, ...cells));
  }
  function render() {
    const start = state.printed ? 0 : state.start, part = state.order.slice(start, start + (state.printed ? PRINTED : PAGE));
    body.replaceChildren(...part.map(rowOf));
    if (!part.length) body.append(make("tr", {}, make("td", { class: "text empty", colspan: state.columns.length }, options.none || "No rows.")));
    splitColumns();
    const first = part.length ? start + 1 : 0, last = start + part.length, all = state.order.length;
    const missing = state.printed && all > PRINTED ? `; ${rounded(all - PRINTED, 0)} more are in the file of "Download CSV"` : "";
    count.textContent = !all && state.query ? options.none : all > PAGE || state.query ? `${rounded(first, 0)} to ${rounded(last, 0)} of ${rounded(all, 0)}${missing}` : "";
    back.disabled = state.start === 0;
    forth.disabled = last >= state.order.length;
    back.hidden = forth.hidden = state.order.length <= PAGE;
    if (!state.printed) fitLabels(scroll, table);
  }
  // Paper does not scroll: columns that do not fit beside the first one follow in further tables.
  function splitColumns() {
    if (state.split) headings();
    scroll.querySelectorAll(".further").forEach(further => further.remove());
    const blocks = state.printed && !options.groups ? paperBlocks(state.columns, body) : [];
    for (const block of blocks.slice(1)) {
      const further = table.cloneNode(true);
      further.classList.add("further");
      further.querySelector("caption span").textContent = `${caption.textContent} (continued)`;
      keepColumns(further, block);
      scroll.append(further);
    }
    if (blocks.length > 1) keepColumns(table, blocks[0]);
    state.split = blocks.length > 1;
  }
  function rowOf(row) {
    const texts = state.columns.map(column => printed(column, row));
    const compared = state.columns.map((column, number) => column.model ? number : -1).filter(number => number >= 0);
    const marks = options.across === false ? [] : places(compared.map(number => texts[number]), state.higher);
    return make("tr", {}, ...state.columns.map((column, number) => {
      const text = texts[number], mark = options.across === false ? (options.mark ? options.mark(row, number) : "") : marks[compared.indexOf(number)] || "";
      if (number === 0) return make("th", { scope: "row" }, column.show ? column.show(text, row) : label(text));
      const spoken = mark === "best" ? "best" : mark === "second" ? "second best" : undefined;
      return make("td", { class: `${column.text ? "text" : ""} ${mark}`.trim(), "data-tip": column.tip, "aria-description": spoken }, column.text ? label(text) : mark === "second" ? make("span", {}, text) : text);
    }));
  }
  arrange();
  new ResizeObserver(() => { if (!state.printed) fitLabels(scroll, table); }).observe(scroll);
  printing.push(printed => { state.printed = printed; render(); });
  return {
    update(columns, higher, text) { state.columns = columns; state.higher = higher; caption.textContent = text ?? caption.textContent; arrange(); },
    state, sortBy,
  };
}

// Numbers of the columns that fit on paper together, always with the first one.
function paperBlocks(columns, body) {
  const font = "11px system-ui, sans-serif", rows = [...body.rows], blocks = [[0]];
  const widths = columns.map((column, number) => {
    const words = (column.head ?? column.title).split(" ").flatMap(pieces), most = column.text && number ? 150 : Infinity;
    const texts = rows.map(row => row.cells[number]?.textContent ?? "");
    return 12 + Math.min(most, Math.max(...words.map(text => widthOf(text, `bold ${font}`)), ...texts.map(text => widthOf(text, font))));
  });
  const first = Math.min(210, widths[0] + (columns[0].show ? 35 : 0));
  let used = first;
  columns.forEach((_, number) => {
    if (!number) return;
    if (used + widths[number] > PAPER && blocks[blocks.length - 1].length > 1) { blocks.push([0]); used = first; }
    blocks[blocks.length - 1].push(number);
    used += widths[number];
  });
  return blocks;
}

function keepColumns(table, numbers) {
  for (const row of table.rows) [...row.cells].forEach((cell, number) => { if (!numbers.includes(number)) cell.remove(); });
}

function groupLine(groups) {
  return make("tr", {}, ...groups.map(([text, size]) => text ? make("th", { scope: "colgroup", colspan: size, class: "group" }, text) : make("td", { colspan: size })));
}

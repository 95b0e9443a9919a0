"use strict";
// Charts as SVG, in the page's own colours; lines differ in dashes too. Redrawn when their width changes.

const SVG = "http://www.w3.org/2000/svg";
// Those of kgtrec.plots.style, for lines of width 2.
const DASHES = ["", "7.4 3.2", "12.8 3.2 2 3.2", "2 3.3", "10 2 2 2 2 2", "16 4", "2 2"];

function svg(name, attributes, text) {
  const element = document.createElementNS(SVG, name);
  for (const key in attributes) element.setAttribute(key, attributes[key]);
  if (text !== undefined) element.textContent = text;
  return element;
}

function styleOf(number) {
  return { color: `var(--s${number % 7})`, dash: DASHES[(number + Math.floor(number / 7)) % 7] };
}

// Circle, square, triangle, diamond, triangle, plus and cross about the origin, as in kgtrec.plots.
const SHAPES = ["M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0", "M-3.5-3.5h7v7h-7z", "M0-4.5 4.2 3.5h-8.4z", "M0-5 4.5 0 0 5-4.5 0z", "M0 4.5 4.2-3.5h-8.4z", "M-1.5-4.5h3v3h3v3h-3v3h-3v-3h-3v-3h3z", "M-4-2.5-2.5-4 0-1.5 2.5-4 4-2.5 1.5 0 4 2.5 2.5 4 0 1.5-2.5 4-4 2.5-1.5 0z"];

function shape(number, x, y, title) {
  const place = (number + 2 * Math.floor(number / 7)) % 7;
  const mark = svg("path", { d: SHAPES[place], transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})`, style: `fill:${styleOf(number).color}` });
  if (title) mark.append(svg("title", {}, title));
  return mark;
}

// The line and marker of a model, for legends and tables.
function sample(number) {
  const mark = svg("svg", { class: "sample", width: 28, height: 12, viewBox: "0 0 28 12", "aria-hidden": "true" });
  const { color, dash } = styleOf(number);
  mark.append(svg("line", { x1: 0, x2: 28, y1: 6, y2: 6, style: `stroke:${color};stroke-width:2`, "stroke-dasharray": dash }), shape(number, 14, 6));
  return mark;
}

// Round numbers that divide a range: about as many as asked, and at least three.
function ticks(low, high, count) {
  const raw = (high - low) / count || 1, power = 10 ** Math.floor(Math.log10(raw));
  let values = [];
  for (const factor of [10, 5, 2.5, 2, 1, 0.5, 0.25, 0.2, 0.1]) {
    const step = factor * power, next = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) next.push(i * step);
    if (values.length >= LEAST_TICKS && next.length > count + 1) break;
    values = next;
  }
  return values;
}

// Round numbers on a logarithmic axis: powers of ten or, if fewer than three are in the range, numbers between them.
function powers(low, high) {
  let values = [];
  for (const factors of [[1], [1, 3], [1, 2, 5], [1, 1.5, 2, 3, 4, 5, 6, 8]]) {
    values = [];
    for (let p = 10 ** Math.floor(Math.log10(low)); p <= high; p *= 10) values.push(...factors.map(factor => factor * p));
    values = values.filter(value => value >= low && value <= high && (value >= 10 || Number.isInteger(value)));
    if (values.length >= LEAST_TICKS) return values;
  }
  const even = ticks(low, high, 4);
  return even.length > values.length ? even : values;
}

const LEAST_TICKS = 3;

// The sign of the better direction.
const arrow = higher => higher === null || higher === undefined ? "" : higher ? " ↑" : " ↓";

// The width of a text as an element of the page would show it.
const pen = document.createElement("canvas").getContext("2d");
function widthOf(text, font) {
  pen.font = font;
  return pen.measureText(text).width;
}
const CHART_FONT = "12px system-ui, sans-serif";

// On paper, a chart is as wide as this, and a part of a chart at most so high; A4 and letter are about 700 wide.
const PAPER = 660, PART = 300;

// What every table and chart does before and after printing.
const printing = [];

// Draw again when the width changes, and for paper.
function redrawn(frame, draw) {
  let drawn = 0, onPaper = false;
  const again = () => {
    drawn = frame.clientWidth;
    draw(onPaper ? PAPER : Math.max(260, drawn || 640), onPaper);
  };
  new ResizeObserver(() => { if (!onPaper && Math.abs(frame.clientWidth - drawn) > 1) again(); }).observe(frame);
  printing.push(printed => { onPaper = printed; again(); });
  again();
  return again;
}

const short = value => value >= 1e6 ? `${value / 1e6}M` : value >= 1e4 ? `${value / 1e3}k` : String(+value.toPrecision(6));

// series: [{name, points: [[x, y], ...]}]; x is on a logarithmic axis.
function lineChart(place, options) {
  const hidden = new Set(), frame = document.createElement("div"), legend = document.createElement("ul");
  frame.className = "part";
  legend.className = "legend";
  options.series.forEach((one, number) => {
    const item = document.createElement("li"), button = document.createElement("button");
    button.type = "button";
    button.setAttribute("aria-pressed", "true");
    const name = document.createElement("bdi");
    name.textContent = one.name;
    if (one.whole && one.whole !== one.name) button.dataset.tip = one.whole;
    button.append(sample(number), name);
    button.addEventListener("click", () => {
      if (!hidden.delete(number)) hidden.add(number);
      button.setAttribute("aria-pressed", String(!hidden.has(number)));
      state.draw();
    });
    item.append(button);
    legend.append(item);
  });
  place.append(frame, legend);
  const state = { options };
  state.draw = redrawn(frame, (width, onPaper) => {
    frame.replaceChildren(lines(state.options, hidden, width, onPaper ? 250 : Math.min(360, Math.max(220, width * 0.5))));
  });
  return state;
}

function lines(options, hidden, width, height) {
  const left = 52, right = width - 14, top = 28, bottom = height - 44;
  const shown = options.series.filter((_, number) => !hidden.has(number));
  const points = (shown.length ? shown : options.series).flatMap(one => one.points);
  const xs = points.map(p => Math.max(p[0], options.least || 1)), ys = points.map(p => p[1]);
  const x0 = Math.log(Math.min(...xs)), x1 = Math.max(Math.log(Math.max(...xs)), x0 + 0.1), y1 = Math.max(...ys) || 1;
  const x = value => left + (right - left) * (Math.log(Math.max(value, options.least || 1)) - x0) / (x1 - x0);
  const y = value => bottom - (bottom - top) * value / y1;
  const chart = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": options.label });
  for (const value of ticks(0, y1, 5)) {
    chart.append(svg("line", { class: "grid", x1: left, x2: right, y1: y(value), y2: y(value) }));
    chart.append(svg("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, short(value)));
  }
  for (const value of powers(Math.exp(x0) * 0.999, Math.exp(x1) * 1.001)) {
    chart.append(svg("line", { class: "grid", x1: x(value), x2: x(value), y1: top, y2: bottom }));
    chart.append(svg("text", { class: "x", x: x(value), y: bottom + 17, "text-anchor": "middle" }, short(value)));
  }
  chart.append(svg("path", { class: "axis", fill: "none", d: `M${left} ${top}V${bottom}H${right}` }));
  chart.append(svg("text", { x: (left + right) / 2, y: height - 8, "text-anchor": "middle" }, options.xLabel));
  chart.append(svg("text", { x: 4, y: 14 }, options.yLabel));
  options.series.forEach((one, number) => {
    if (hidden.has(number)) return;
    const { color, dash } = styleOf(number), points = one.points.filter(p => p[1] !== null);
    const d = points.map((p, i) => `${i ? "L" : "M"}${x(p[0]).toFixed(1)} ${y(p[1]).toFixed(1)}`).join("");
    const line = svg("path", { class: "line", d, style: `stroke:${color}`, "stroke-dasharray": dash });
    line.append(svg("title", {}, one.name));
    chart.append(line);
    // On curves of many points, markers of several models stand beside one another.
    const step = options.dots ? 1 : Math.max(1, Math.floor(points.length / 6));
    points.forEach((p, i) => {
      if (i % step === number % step) chart.append(shape(number, x(p[0]), y(p[1]), `${one.name}: ${p[2] || short(p[0])}: ${short(p[1])}`));
    });
  });
  return chart;
}

// groups: [{name, whole, points: [{model, name, value, low, high}]}]: a row for each, with a marker and its interval per
// point. A chart that is higher than the window is in parts, which repeat the axis and the legend.
function intervalChart(place, options) {
  const frame = document.createElement("div"), state = { options };
  place.append(frame);
  state.draw = redrawn(frame, (width, onPaper) => {
    const layout = intervalLayout(state.options, width), most = onPaper ? PART : Math.max(280, Math.min(560, innerHeight - 240));
    const rows = Math.max(1, Math.floor(most / layout.step)), parts = [];
    for (let first = 0; first < layout.groups.length; first += rows) {
      const part = document.createElement("div");
      part.className = "part";
      if (state.options.legend) part.append(state.options.legend());
      part.append(intervals(layout, first, Math.min(layout.groups.length, first + rows)));
      parts.push(part);
    }
    frame.replaceChildren(...parts);
    for (const name of frame.querySelectorAll(".row")) shorten(name, layout.names);
  });
  return state;
}

const NARROW = 500;

// The scale and the places of names, which all parts of a chart share. On narrow screens, names are above their rows.
function intervalLayout(options, width) {
  const { groups } = options, narrow = width < NARROW, beside = options.marked ? 18 : 0;
  const most = Math.max(...groups.map(group => group.points.length)), step = 12 + 11 * most + (narrow ? 15 : 0);
  const widest = Math.max(...groups.map(group => widthOf(group.name, CHART_FONT)));
  const names = narrow ? width - 12 - beside : Math.min(Math.ceil(widest) + 2, width * 0.55), left = narrow ? 16 : names + 18 + beside, right = width - 20;
  const points = groups.flatMap(group => group.points).filter(point => point.value !== null);
  const low = Math.min(...points.map(p => p.low ?? p.value)), high = Math.max(...points.map(p => p.high ?? p.value));
  const margin = (high - low) * 0.04 || 0.01, a = low - margin, b = high + margin;
  const x = value => left + (right - left) * (value - a) / (b - a);
  return { ...options, width, narrow, beside, step, names, left, right, x, values: ticks(a, b, narrow ? 3 : 6) };
}

// Rows of a part of the chart, from `first` to the one before `last`, with their axis.
function intervals(layout, first, last) {
  const { width, narrow, beside, step, left, right, x } = layout, top = 8;
  const height = top + step * (last - first) + 40, bottom = height - 40;
  const chart = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": layout.label });
  for (let number = first; number < last; number++) {
    if (number % 2) chart.append(svg("rect", { class: "band", x: 0, width, y: top + step * (number - first), height: step }));
  }
  for (const value of layout.values) {
    chart.append(svg("line", { class: "grid", x1: x(value), x2: x(value), y1: top, y2: bottom }));
    chart.append(svg("text", { class: "x", x: x(value), y: bottom + 16, "text-anchor": "middle" }, short(value)));
  }
  layout.groups.slice(first, last).forEach((group, number) => {
    const middle = top + step * (number + 0.5) + (narrow ? 7 : 0), base = narrow ? top + step * number + 13 : middle + 4;
    const name = svg("text", narrow ? { class: "row", x: 4 + beside, y: base } : { class: "row", x: left - 10 - beside, y: base, "text-anchor": "end" }, group.name);
    name.append(svg("title", {}, group.whole || group.name));
    chart.append(name);
    if (beside) chart.append(shape(group.points[0].model, narrow ? 10 : left - 16, base - 4));
    group.points.forEach((point, i) => {
      if (point.value === null) return;
      const y = middle + 11 * (i - (group.points.length - 1) / 2);
      if (point.low !== null) chart.append(svg("line", { x1: x(point.low), x2: x(point.high), y1: y, y2: y, style: `stroke:${styleOf(point.model).color};stroke-width:2` }));
      chart.append(shape(point.model, x(point.value), y, `${point.name}: ${short(point.value)}`));
    });
  });
  chart.append(svg("text", { x: (left + right) / 2, y: height - 6, "text-anchor": "middle" }, layout.xLabel));
  return chart;
}

// Cut the middle of a name that is wider than its space; its title is the whole name.
function shorten(name, width) {
  const text = name.firstChild, signs = [...text.data];
  for (let n = signs.length - 1; n > 1 && name.getComputedTextLength() > width; n--) {
    text.data = `${signs.slice(0, Math.floor(n / 2)).join("")}…${signs.slice(signs.length - Math.ceil(n / 2)).join("")}`;
  }
}

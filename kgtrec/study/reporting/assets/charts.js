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
  const mark = svg("svg", { class: "sample", width: 28, height: 12, "aria-hidden": "true" });
  const { color, dash } = styleOf(number);
  mark.append(svg("line", { x1: 0, x2: 28, y1: 6, y2: 6, style: `stroke:${color};stroke-width:2`, "stroke-dasharray": dash }), shape(number, 14, 6));
  return mark;
}

// Round numbers that divide a range: about as many as are wished for.
function ticks(low, high, count) {
  const raw = (high - low) / count || 1, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].find(factor => factor * power >= raw) * power, values = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) values.push(i * step);
  return values;
}

function powers(low, high) {
  const values = [];
  for (let p = 1; p <= high; p *= 10) if (p >= low) values.push(p);
  return values;
}

const short = value => value >= 1e6 ? `${value / 1e6}M` : value >= 1e4 ? `${value / 1e3}k` : String(+value.toPrecision(6));

// series: [{name, points: [[x, y], ...]}]; x is on a logarithmic axis.
function lineChart(place, options) {
  const hidden = new Set(), frame = document.createElement("div"), legend = document.createElement("ul");
  legend.className = "legend";
  options.series.forEach((one, number) => {
    const item = document.createElement("li"), button = document.createElement("button");
    button.type = "button";
    button.setAttribute("aria-pressed", "true");
    const name = document.createElement("bdi");
    name.textContent = one.name;
    button.append(sample(number), name);
    button.addEventListener("click", () => {
      if (!hidden.delete(number)) hidden.add(number);
      button.setAttribute("aria-pressed", String(!hidden.has(number)));
      draw();
    });
    item.append(button);
    legend.append(item);
  });
  place.append(frame, legend);
  const state = { options, draw };
  let drawn = 0;
  function draw() {
    const width = Math.max(260, frame.clientWidth || 640), height = Math.min(360, Math.max(220, width * 0.5));
    drawn = width;
    frame.replaceChildren(lines(state.options, hidden, width, height));
  }
  new ResizeObserver(() => { if (Math.abs(frame.clientWidth - drawn) > 1) draw(); }).observe(frame);
  draw();
  return state;
}

function lines(options, hidden, width, height) {
  const left = 52, right = width - 14, top = 28, bottom = height - 44;
  const shown = options.series.filter((_, number) => !hidden.has(number));
  const points = (shown.length ? shown : options.series).flatMap(one => one.points);
  const xs = points.map(p => Math.max(p[0], options.least || 1)), ys = points.map(p => p[1]);
  const x0 = Math.log(Math.min(...xs)), x1 = Math.log(Math.max(...xs)) || 1, y1 = Math.max(...ys) || 1;
  const x = value => left + (right - left) * (Math.log(Math.max(value, options.least || 1)) - x0) / (x1 - x0 || 1);
  const y = value => bottom - (bottom - top) * value / y1;
  const chart = svg("svg", { width, height, role: "img", "aria-label": options.label });
  for (const value of ticks(0, y1, 5)) {
    chart.append(svg("line", { class: "grid", x1: left, x2: right, y1: y(value), y2: y(value) }));
    chart.append(svg("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, short(value)));
  }
  for (const value of powers(Math.exp(x0) * 0.999, Math.exp(x1) * 1.001)) {
    chart.append(svg("line", { class: "grid", x1: x(value), x2: x(value), y1: top, y2: bottom }));
    chart.append(svg("text", { x: x(value), y: bottom + 17, "text-anchor": "middle" }, short(value)));
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

// groups: [{name, points: [{model, name, value, low, high}]}]: a row for each, with a marker and its interval per point.
function intervalChart(place, options) {
  const frame = document.createElement("div"), state = { options, draw };
  place.append(frame);
  let drawn = 0;
  function draw() {
    drawn = frame.clientWidth;
    const chart = intervals(state.options, Math.max(260, drawn || 640));
    frame.replaceChildren(chart);
    for (const label of chart.querySelectorAll(".row")) shorten(label, Number(label.getAttribute("x")) - 2);
  }
  new ResizeObserver(() => { if (Math.abs(frame.clientWidth - drawn) > 1) draw(); }).observe(frame);
  draw();
  return state;
}

function intervals(options, width) {
  const most = Math.max(...options.groups.map(group => group.points.length)), step = 12 + 11 * most, top = 8;
  const height = top + step * options.groups.length + 40, bottom = height - 40;
  const left = Math.min(230, width * 0.36), right = width - 20;
  const points = options.groups.flatMap(group => group.points).filter(point => point.value !== null);
  const low = Math.min(...points.map(p => p.low ?? p.value)), high = Math.max(...points.map(p => p.high ?? p.value));
  const margin = (high - low) * 0.04 || 0.01, a = low - margin, b = high + margin;
  const x = value => left + (right - left) * (value - a) / (b - a);
  const chart = svg("svg", { width, height, role: "img", "aria-label": options.label });
  options.groups.forEach((_, number) => {
    if (number % 2) chart.append(svg("rect", { class: "band", x: 0, width, y: top + step * number, height: step }));
  });
  for (const value of ticks(a, b, width < 500 ? 3 : 6)) {
    chart.append(svg("line", { class: "grid", x1: x(value), x2: x(value), y1: top, y2: bottom }));
    chart.append(svg("text", { x: x(value), y: bottom + 16, "text-anchor": "middle" }, short(value)));
  }
  options.groups.forEach((group, number) => {
    const middle = top + step * (number + 0.5);
    chart.append(svg("text", { class: "row", x: left - 8, y: middle + 4, "text-anchor": "end" }, group.name));
    group.points.forEach((point, i) => {
      if (point.value === null) return;
      const y = middle + 11 * (i - (group.points.length - 1) / 2);
      if (point.low !== null) chart.append(svg("line", { x1: x(point.low), x2: x(point.high), y1: y, y2: y, style: `stroke:${styleOf(point.model).color};stroke-width:2` }));
      chart.append(shape(point.model, x(point.value), y, `${point.name}: ${short(point.value)}`));
    });
  });
  chart.append(svg("text", { x: (left + right) / 2, y: height - 6, "text-anchor": "middle" }, options.xLabel));
  return chart;
}

// Cut the middle of a text that is wider than its place; its title is the whole text.
function shorten(label, width) {
  const whole = label.textContent, signs = [...whole];
  for (let n = signs.length - 1; n > 1 && label.getComputedTextLength() > width; n--) {
    label.textContent = `${signs.slice(0, Math.ceil(n / 2)).join("")}…${signs.slice(signs.length - Math.floor(n / 2)).join("")}`;
  }
  label.append(svg("title", {}, whole));
}

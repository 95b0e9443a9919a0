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

function sample(number) {
  const mark = svg("svg", { width: 28, height: 10, "aria-hidden": "true" });
  const { color, dash } = styleOf(number);
  mark.append(svg("line", { x1: 0, x2: 28, y1: 5, y2: 5, style: `stroke:${color};stroke-width:2.5`, "stroke-dasharray": dash }));
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
  const left = 52, right = width - 14, top = 10, bottom = height - 44;
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
  options.series.forEach((one, number) => {
    if (hidden.has(number)) return;
    const { color, dash } = styleOf(number), points = one.points.filter(p => p[1] !== null);
    const d = points.map((p, i) => `${i ? "L" : "M"}${x(p[0]).toFixed(1)} ${y(p[1]).toFixed(1)}`).join("");
    const line = svg("path", { class: "line", d, style: `stroke:${color}`, "stroke-dasharray": dash });
    line.append(svg("title", {}, one.name));
    chart.append(line);
    if (options.dots) for (const p of points) {
      const dot = svg("circle", { cx: x(p[0]), cy: y(p[1]), r: 3, style: `fill:${color}` });
      dot.append(svg("title", {}, `${one.name}: ${p[2] || short(p[0])}: ${short(p[1])}`));
      chart.append(dot);
    }
  });
  return chart;
}

// rows: [{name, value, low, high}], a dot with its interval each.
function intervalChart(place, options) {
  const frame = document.createElement("div");
  place.append(frame);
  let drawn = 0;
  function draw() {
    const width = Math.max(260, frame.clientWidth || 640), step = 24, top = 8;
    drawn = width;
    const height = top + step * options.rows.length + 40, bottom = height - 40;
    const left = Math.min(190, width * 0.36), right = width - 20;
    const low = Math.min(...options.rows.map(r => r.low)), high = Math.max(...options.rows.map(r => r.high));
    const margin = (high - low) * 0.04 || 0.01, a = low - margin, b = high + margin;
    const x = value => left + (right - left) * (value - a) / (b - a);
    const chart = svg("svg", { width, height, role: "img", "aria-label": options.label });
    for (const value of ticks(a, b, width < 500 ? 3 : 6)) {
      chart.append(svg("line", { class: "grid", x1: x(value), x2: x(value), y1: top, y2: bottom }));
      chart.append(svg("text", { x: x(value), y: bottom + 16, "text-anchor": "middle" }, short(value)));
    }
    options.rows.forEach((row, number) => {
      const y = top + step * (number + 0.5);
      const label = svg("text", { class: "row", x: left - 8, y: y + 4, "text-anchor": "end" }, row.name);
      chart.append(label);
      chart.append(svg("line", { x1: x(row.low), x2: x(row.high), y1: y, y2: y, style: "stroke:var(--s0);stroke-width:2" }));
      chart.append(svg("circle", { cx: x(row.value), cy: y, r: 4, style: "fill:var(--s0)" }));
    });
    chart.append(svg("text", { x: (left + right) / 2, y: height - 6, "text-anchor": "middle" }, options.xLabel));
    frame.replaceChildren(chart);
    for (const label of chart.querySelectorAll(".row")) shorten(label, left - 10);
  }
  new ResizeObserver(() => { if (Math.abs(frame.clientWidth - drawn) > 1) draw(); }).observe(frame);
  draw();
}

// Cut a text that is wider than its place; its title has it whole.
function shorten(label, width) {
  const whole = label.textContent, signs = [...whole];
  for (let n = signs.length; n > 1 && label.getComputedTextLength() > width; n--) {
    label.textContent = `${signs.slice(0, n - 1).join("")}…`;
  }
  label.append(svg("title", {}, whole));
}

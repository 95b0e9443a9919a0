// Puts the data of the page into its sections. Nothing from the data is ever taken for markup.

const DATA = JSON.parse(document.getElementById("data").textContent);
const MODELS = DATA.models;
const SHORT = DATA.short; // long names of models without the words that all share

function definition(key) {
  const entry = DATA.definitions[key];
  if (!entry) return undefined;
  return `${entry.title}: ${entry.help}${entry.formula ? ` Formula: ${entry.formula}.` : ""} Range ${entry.range}.${direction(entry.higher)}`;
}

const keyOf = metric => `${DATA.side}.realistic.micro.${metric}`;
const info = metric => DATA.definitions[keyOf(metric)];

// Sections open and close; these are open at first.
const OPEN = ["summary", "headline", "parts"];
const folds = [];

function section(id, title, ...intro) {
  const heading = make("h2", { id: `${id}-title` }, title);
  const fold = make("details", { class: "fold", open: OPEN.includes(id) ? "" : undefined }, make("summary", {}, heading), ...intro);
  folds.push(fold);
  document.getElementById("main").append(make("section", { id, "aria-labelledby": `${id}-title`, tabindex: "-1" }, fold));
  document.getElementById("contents").append(make("li", {}, make("a", { href: `#${id}`, onclick: () => { fold.open = true; } }, title)));
  return fold;
}

function openNamed() {
  const named = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const fold = named && named.querySelector("details.fold");
  if (fold) { fold.open = true; named.scrollIntoView(); }
}

function foldButton() {
  const button = make("button", { type: "button", id: "fold", onclick: () => { const open = folds.some(fold => !fold.open); folds.forEach(fold => { fold.open = open; }); } });
  const show = () => { button.textContent = folds.some(fold => !fold.open) ? "Open all sections" : "Close all sections"; };
  folds.forEach(fold => fold.addEventListener("toggle", show));
  show();
  document.querySelector("nav").append(button);
}

// Print has every section, and up to PRINTED rows of each table.
function printWhole() {
  let closed = null, extras = [];
  const before = () => {
    if (closed) return;
    closed = folds.filter(fold => !fold.open);
    closed.forEach(fold => { fold.open = true; });
    extras = [...document.querySelectorAll("details.whole:not([open])")];
    extras.forEach(box => { box.open = true; });
    printing.forEach(print => print(true));
  };
  const after = () => {
    if (!closed) return;
    closed.forEach(fold => { fold.open = false; });
    extras.forEach(box => { box.open = false; });
    closed = null;
    printing.forEach(print => print(false));
  };
  addEventListener("beforeprint", before);
  addEventListener("afterprint", after);
  matchMedia("print").addEventListener("change", event => event.matches ? before() : after());
}

function summary() {
  section("summary", "Summary", make("ul", { class: "facts" }, ...DATA.summary.map(text => make("li", {}, isolated(text)))));
}

// A model's marker beside its name.
function named(model) {
  const isShort = SHORT[model] !== MODELS[model];
  return make("span", { class: "entry", "data-tip": isShort ? MODELS[model] : undefined }, sample(model), make("bdi", {}, ...breakable(SHORT[model])));
}

const modelColumn = (title = "Model", order = null) => ({ title, text: true, get: row => MODELS[order ? order[row] : row], show: (_, row) => named(order ? order[row] : row) });
// The heading of a model's column.
const ofModel = (model, measure = "") => ({ title: MODELS[model] + measure, head: SHORT[model] + measure, name: true });

function legend() {
  return make("ul", { class: "legend", "aria-label": "Models" }, ...MODELS.map((_, model) => make("li", {}, named(model))));
}

function choice(label, names, texts, change) {
  const select = make("select", { onchange: event => change(event.target.value) }, ...names.map((name, i) => make("option", { value: name }, texts[i])));
  return make("label", {}, label, select);
}

function metricChoice(change) {
  return choice("Metric", DATA.metrics, DATA.metrics.map(metric => info(metric).title), change);
}

// A measure with the sign of its better direction, and the same in words.
const titled = entry => entry.title + arrow(entry.higher);
const direction = higher => higher === null || higher === undefined ? "" : higher ? " Higher is better." : " Lower is better.";

function modelColumns(values, metric) {
  const about = definition(keyOf(metric));
  return MODELS.map((_, model) => ({ ...ofModel(model), model: true, digits: info(metric).digits, definition: about, tip: about, get: row => values[metric][model][row] }));
}

function headline() {
  const place = section("headline", "Results");
  const { keys, kinds, values, ends } = DATA.headline, groups = [["", 1]];
  kinds.forEach(kind => { const last = groups[groups.length - 1]; if (last[0] === kind) last[1]++; else groups.push([kind, 1]); });
  const columns = keys.map((key, i) => ({ title: DATA.definitions[key].title, head: titled(DATA.definitions[key]), definition: definition(key), tip: definition(key), digits: DATA.definitions[key].digits, get: model => values[i][model], ends: model => ends[i][model] }));
  const marks = keys.map((key, i) => places(MODELS.map((_, model) => printed(columns[i], model)), DATA.definitions[key].higher));
  dataTable(place, { columns: [modelColumn(), ...columns], rows: MODELS.length, across: false, mark: (row, number) => number ? marks[number - 1][row] : "", groups, label: "Results of all models", file: "results", caption: MODELS.length > 2 ? "The best of a column is bold on colour, the second best in a frame. Arrows show which direction is better." : "The best of a column is bold on colour. Arrows show which direction is better." });
  if (SHORT.some((name, model) => name !== MODELS[model])) {
    place.append(make("details", { class: "whole" }, make("summary", {}, "The whole names of the models"), make("ul", { class: "names" }, ...MODELS.map((name, model) => make("li", {}, named(model), make("bdi", {}, ...breakable(name)))))));
  }
}

function parts() {
  const place = section("parts", "Sides and categories"), { names, questions, instances, values, low, high } = DATA.parts;
  const groups = metric => names.map((name, row) => ({ name, points: SHORT.map((model, i) => ({ model: i, name: model, value: values[metric][i][row], low: low[metric][i][row], high: high[metric][i][row] })) }));
  const drawn = metric => ({ groups: groups(metric), legend, xLabel: titled(info(metric)), label: `${info(metric).title} of every model by part, with intervals` });
  const change = metric => { chart.options = drawn(metric); chart.draw(); table.update(columns(metric), info(metric).higher, caption(metric)); };
  place.append(make("div", { class: "controls" }, metricChoice(change)));
  const chart = intervalChart(figure(place, "Values on parts of the answers, with 95 % intervals from resampling the questions. Head: the head is predicted."), drawn("mrr"));
  const needed = !DATA.relations ? " By the terms of the questions." : DATA.relations.categories ? "" : " Categories and quartiles of popularity need the graph (--graph).";
  const caption = metric => `${titled(info(metric))} of every model by part: the values of the chart.${needed}`;
  const columns = metric => [{ title: "Part", text: true, get: row => names[row] }, { title: "Questions", get: row => questions[row] }, { title: "Answers", get: row => instances[row] }, ...modelColumns(values, metric)];
  const table = dataTable(place, { columns: columns("mrr"), rows: names.length, higher: true, label: "Metrics by part", file: "parts", caption: caption("mrr") });
}

function relations() {
  if (!DATA.relations) return;
  const place = section("relations", "Relations"), { names, instances, categories, values } = DATA.relations;
  const columns = metric => [{ title: "Relation", text: true, get: row => names[row] }, { title: "Answers", get: row => instances[row] }, ...(categories ? [{ title: "Category", text: true, get: row => categories[row] }] : []), ...modelColumns(values, metric)];
  const caption = metric => `${titled(info(metric))} of every model, one row per relation. Click a heading to sort; click again to reverse.`;
  const table = dataTable(place, { columns: columns("mrr"), rows: names.length, higher: true, sorted: 1, search: "Search relations", none: "No relation matches.", label: "Metrics by relation", file: "relations", controls: [metricChoice(metric => table.update(columns(metric), info(metric).higher, caption(metric)))], caption: caption("mrr") });
}

function figure(place, caption) {
  const element = make("figure", {}), box = make("div", {});
  element.append(box, make("figcaption", {}, caption));
  place.append(element);
  return box;
}

function asTable(place, label, file, columns, rows) {
  const box = make("details", {}, make("summary", {}, "The values as a table"));
  let done = false;
  box.addEventListener("toggle", () => { if (!done) { done = true; dataTable(box, { columns, rows, label, file, sortable: false, across: false }); } });
  place.append(box);
}

function distribution() {
  const place = section("distribution", "Distribution of ranks"), { k, share } = DATA.distribution;
  const series = SHORT.map((name, model) => ({ name, whole: MODELS[model], points: k.map((cut, i) => [cut, share[model][i]]) }));
  lineChart(figure(place, "Share of answers with a realistic rank of at most k: Hits@k for every k."), { series, xLabel: "k", yLabel: "share of answers", label: "Share of answers with rank at most k, one line per model" });
  asTable(place, "Distribution of ranks", "distribution", [{ title: "k", get: i => k[i] }, ...MODELS.map((_, model) => ({ ...ofModel(model), digits: 4, get: i => share[model][i] }))], k.length);
}

function ties() {
  const place = section("ties", "Ties", make("p", {}, "How many answers tie with other candidates, and how much ties can change each metric."));
  const one = (title, about, digits, get) => ({ title, definition: about, tip: about, digits, get });
  const width = (title, key, digits) => one(`${title} ±`, `Optimistic minus pessimistic ${title}: how much ties alone can change it.`, digits, model => DATA.ties[MODELS[model]].width[key]);
  dataTable(place, { columns: [modelColumn(),
    one("Tied %", "Share of answers that have the score of at least one other candidate.", 3, model => 100 * DATA.ties[MODELS[model]].tied_share),
    one("Mean tie", "Other candidates with the answer's score, on average over all answers.", 3, model => DATA.ties[MODELS[model]].mean_equal),
    one("Largest tie", "The largest number of other candidates with the score of an answer.", 0, model => DATA.ties[MODELS[model]].max_equal),
    width("MRR", "mrr", 6), width("Hits@10", "hits@10", 6), width("MR", "mr", 4)], rows: MODELS.length, across: false, label: "Ties", file: "ties" });
}

function popularity() {
  const place = section("popularity", "Popularity of the answer"), { from, to, instances, values } = DATA.popularity;
  const span = from.map((low, i) => low === to[i] ? rounded(low, 0) : `${rounded(low, 0)} to ${rounded(to[i], 0)}`);
  const series = metric => SHORT.map((name, model) => ({ name, whole: MODELS[model], points: from.map((low, i) => [Math.max(0.5, Math.sqrt(Math.max(low, 0.25) * Math.max(to[i], 0.25))), values[metric][model][i], `${span[i]} triples`]) }));
  const controls = make("div", { class: "controls" });
  place.append(controls);
  const chart = lineChart(figure(place, "A metric by the number of triples of the predicted entity, in bins that double. Bins of few answers are noisy: see the table."), { series: series("mrr"), least: 0.5, dots: true, xLabel: "triples of the predicted entity", yLabel: titled(info("mrr")), label: "MRR by popularity of the answer, one line per model" });
  controls.append(metricChoice(metric => { chart.options = { ...chart.options, series: series(metric), yLabel: titled(info(metric)), label: `${info(metric).title} by popularity of the answer, one line per model` }; chart.draw(); }));
  asTable(place, "Popularity of the answer", "popularity", [{ title: "Triples", text: true, get: i => span[i] }, { title: "Answers", get: i => instances[i] }, ...DATA.metrics.flatMap(metric => MODELS.map((_, model) => ({ ...ofModel(model, `, ${info(metric).title}`), digits: info(metric).digits, get: i => values[metric][model][i] })))], from.length);
}

function comparison() {
  if (!DATA.comparisons.length) return;
  const place = section("comparison", "Comparison"), box = make("div", {}), controls = make("div", { class: "controls" });
  place.append(controls, box);
  controls.append(choice("Measure", DATA.comparisons.map((_, i) => String(i)), DATA.comparisons.map(one => one.label), value => show(DATA.comparisons[Number(value)])));
  function show(one) {
    box.replaceChildren();
    const percent = `${Math.round(one.confidence * 100)} %`;
    box.append(make("p", {}, isolated(one.sentence)));
    intervalChart(figure(box, `Values with ${percent} intervals, from resampling the questions.`), { marked: true, groups: one.order.map(i => ({ name: SHORT[i], whole: MODELS[i], points: [{ model: i, name: SHORT[i], value: one.values[i], low: one.low[i], high: one.high[i] }] })), xLabel: titled({ ...one, title: one.label }), label: `${one.title} of all models with intervals` });
    const about = `Difference in ${titled(one)}: the model of the row minus that of the column. Bold on colour: significant at p < ${one.level} (${one.method}).`;
    const columns = one.order.map(j => ({ ...ofModel(j), digits: one.digits, get: row => one.difference[one.order[row]][j], tip: about }));
    dataTable(box, { columns: [modelColumn("minus →", one.order), { title: one.title, head: titled(one), digits: one.digits, get: row => one.values[one.order[row]] }, ...columns], rows: MODELS.length, sortable: false, across: false, mark: (row, number) => number > 1 && one.p[one.order[row]][one.order[number - 2]] !== null && one.p[one.order[row]][one.order[number - 2]] < one.level ? "won" : "", label: "Differences of all pairs", file: "differences", caption: about });
    asTable(box, "p-values of all pairs", "p-values", [modelColumn("p", one.order), ...one.order.map(j => ({ ...ofModel(j), print: smallText, get: row => one.p[one.order[row]][j] }))], MODELS.length);
  }
  show(DATA.comparisons[0]);
}

function changes() {
  if (!DATA.changes.length) return;
  const place = section("changes", "Which answers change", make("p", {}, "Gained: answers among the k best of the model after but not of the model before, by realistic ranks; lost: the reverse."));
  const box = make("div", {}), controls = make("div", { class: "controls" });
  let [before, after] = DATA.changes[0].models;
  const turned = (event, model) => { event.value = String(model); };
  const from = choice("Before", MODELS.map((_, i) => String(i)), SHORT, value => { if (Number(value) === after) turned(to.lastChild, after = before); before = Number(value); show(); });
  const to = choice("After", MODELS.map((_, i) => String(i)), SHORT, value => { if (Number(value) === before) turned(from.lastChild, before = after); after = Number(value); show(); });
  turned(from.lastChild, before);
  turned(to.lastChild, after);
  controls.append(from, to);
  place.append(controls, box);
  function show() {
    box.replaceChildren();
    // The data have one order of two models; the other order has the same counts, swapped.
    const one = DATA.changes.find(pair => pair.models.includes(before) && pair.models.includes(after));
    const [first, second] = one.models[0] === before ? [0, 1] : [1, 0];
    const { hits, best, largest } = one;
    dataTable(box, { columns: [{ title: "Side", text: true, get: i => hits[i][0] }, { title: "Measure", text: true, get: i => hits[i][1] }, { title: "Answers", get: i => hits[i][2] },
      { ...ofModel(before), digits: 4, get: i => hits[i][3 + first] }, { ...ofModel(after), digits: 4, get: i => hits[i][3 + second] },
      { title: "Gained", get: i => hits[i][5 + first] }, { title: "Lost", get: i => hits[i][5 + second] },
      { title: "Changed", digits: 4, get: i => hits[i][7], tip: "Gained and lost, as a share of all answers." }], rows: hits.length, sortable: false, across: false, label: "Answers gained and lost", file: "gained-and-lost" });
    if (best) dataTable(box, { columns: [{ title: "Side", text: true, get: i => best[i][0] }, { title: "Questions", get: i => best[i][1] },
      { title: "Same first", digits: 4, get: i => best[i][2], tip: "Share of the questions for which both put the same entity first, right or wrong." },
      { title: "Same, right", get: i => best[i][3] }, { title: "Same, wrong", get: i => best[i][4] },
      { title: "Only before", get: i => best[i][5 + first], tip: "Right where the model after is wrong." }, { title: "Only after", get: i => best[i][5 + second], tip: "Right where the model before is wrong." },
      { title: "Both right", get: i => best[i][7], tip: "With different answers." }, { title: "Both wrong", get: i => best[i][8], tip: "With different entities." }], rows: best.length, sortable: false, across: false, label: "Agreement of best answers", file: "best-answers" });
    else box.append(make("p", { class: "quiet" }, "Add the runs (kgtrec report --run) to see how often both put the same entity first."));
    dataTable(box, { columns: [{ title: "Question", text: true, get: i => largest[i][0] }, { title: "Answer", text: true, get: i => largest[i][1] },
      { ...ofModel(before), model: true, print: rankText, get: i => largest[i][2 + first] }, { ...ofModel(after), model: true, print: rankText, get: i => largest[i][2 + second] }], rows: largest.length, higher: false, label: "Largest changes", file: "largest-changes", caption: "The answers whose ranks change most, by the difference of reciprocal ranks; ? is the missing entity." });
  }
  show();
}

function questions() {
  const place = section("questions", "Questions to look at"), { rows, lists, runs } = DATA.questions;
  if (!runs.length) place.append(make("p", { class: "quiet" }, "Add the runs (kgtrec report --run) to see what was ranked first."));
  const box = make("div", {}), controls = make("div", { class: "controls" });
  let model = MODELS[0], kind = "worst";
  const kinds = { worst: "Worst", best: "Best (rarest answers first)", ahead: "Furthest ahead of the others" };
  const known = Object.keys(kinds).filter(name => lists[model][name]);
  controls.append(choice("Model", MODELS, SHORT, value => { model = value; show(); }), choice("Answers", known, known.map(name => kinds[name]), value => { kind = value; show(); }));
  place.append(controls, box);
  function first(row, number) {
    const answers = rows[row].first[number];
    return answers ? answers.map(([label, right]) => right ? `${label} ✓` : label).join(" · ") : null;
  }
  function show() {
    box.replaceChildren();
    const chosen = lists[model][kind], at = MODELS.indexOf(model);
    const columns = [{ title: "Question", text: true, get: i => rows[chosen[i]].question }, { title: "Answer", text: true, get: i => rows[chosen[i]].answer }, { title: "Popularity", get: i => rows[chosen[i]].popularity, tip: "Triples that contain the answer." }];
    if (runs.includes(model)) columns.push({ title: "Ranked first", text: true, get: i => first(chosen[i], at), tip: `The best candidates by ${model}; ✓ marks answers.` });
    MODELS.forEach((_, number) => columns.push({ ...ofModel(number), model: true, print: rankText, get: i => rows[chosen[i]].ranks[number], tip: "Realistic rank of the answer." }));
    dataTable(box, { columns, rows: chosen.length, higher: false, label: "Questions", file: "questions", caption: `${SHORT[at]}, ${kinds[kind].toLowerCase()}: ranks of answers by every model (1 is best); ? is the missing entity.` });
  }
  show();
}

function about() {
  const list = make("dl", { class: "terms" });
  for (const key in DATA.definitions) list.append(make("dt", {}, key), make("dd", {}, definition(key)));
  section("about", "Definitions and data", list, make("div", { class: "controls" }, make("button", { type: "button", id: "all-data", onclick: () => download("kgtrec-report.json", JSON.stringify(DATA), "application/json") }, "Download all data (JSON)")));
}

document.getElementById("caption").append(isolated(DATA.caption));
document.getElementById("version").textContent = DATA.kgtrec;
if (DATA.warnings.length) {
  const box = document.getElementById("warnings");
  box.hidden = false;
  DATA.warnings.forEach(text => box.append(make("p", {}, isolated(text))));
}
for (const build of [summary, headline, parts, relations, distribution, ties, popularity, comparison, changes, questions, about]) build();
tooltips();
foldButton();
printWhole();
addEventListener("hashchange", openNamed);
openNamed();
document.body.dataset.ready = "true";

// What comes at a place or in an area: a sentence, a curve, a table, and the list of areas.
"use strict";

function point(lat, lon) {
  [state.place, state.area] = [[lat, lon], null];
  [$("lat").value, $("lon").value] = [lat, lon];
  return tell(base() ? () => pointOfFiles(Number(lat), Number(lon)) :
    () => ask(`v1/point?lat=${encodeURIComponent(lat)}&lon=${encodeURIComponent(lon)}`));
}

function area(name) {
  [state.place, state.area] = [null, name];
  return tell(() => ask(base() ? `${base()}v1/area/${state.frames.areas.indexOf(name)}` : `v1/area?name=${encodeURIComponent(name)}`));
}

async function pointOfFiles(lat, lon) { // as the server answers, from the square of cells around it
  const { side, rain, probability, missing } = state.frames.squares, cell = cellAt(lat, lon);
  const answer = await ask(`${base()}v1/point`), forecast = answer.forecast;
  const [row, column] = [cell.row, cell.column].map((at) => Math.floor(at / side));
  const response = await fetch(`${base()}square/${row}-${column}`);
  const bytes = response.body.pipeThrough(new DecompressionStream("deflate"));
  const numbers = new Uint16Array(await new Response(bytes).arrayBuffer());
  const ny = Math.min(side, state.map.ny - row * side), nx = Math.min(side, state.map.nx - column * side);
  let at = (cell.row % side) * nx + cell.column % side;
  const next = (scale) => {
    const code = numbers[at];
    at += ny * nx;
    return code === missing ? null : code / scale;
  };
  for (const entry of [...answer.observed, ...forecast]) entry.rain_rate = next(rain);
  for (const [name, scale] of [["quantiles", rain], ["exceedance_probability", probability]])
    for (const key of levels(forecast[0][name]))
      for (const entry of forecast) entry[name][key] = next(scale);
  const lowest = levels(forecast[0].exceedance_probability)[0];
  const wet = forecast.find((e) => lowest === undefined ? e.rain_rate >= 0.1 : e.exceedance_probability[lowest] >= 0.5);
  const last = answer.observed.filter((e) => e.time <= answer.start).pop();
  answer.arrival = { ...answer.arrival, raining: Boolean(last && last.rain_rate >= 0.1), known: forecast.some((e) => e.rain_rate !== null),
    ...(wet && { time: wet.time, lead_minutes: wet.lead_minutes, probability: lowest === undefined ? null : wet.exceedance_probability[lowest] }) };
  return { ...answer, cell };
}

async function tell(question) {
  state.asked = question;
  try {
    const answer = cellsOf(await question());
    if (question !== state.asked) return; // another place is wanted meanwhile
    state.cell = answer.cell;
    $("arrival").textContent = `${answer.name ? `${answer.name}: ` : ""}${arrival(answer)}`;
    chart(answer);
    table(answer);
    $("key").className = answer.name ? "area" : "";
    for (const part of ["chart", "key", "numbers"]) $(part).toggleAttribute("hidden", false);
  } catch (error) {
    $("arrival").textContent = `${error.message}.`;
  }
  press();
  for (const path of document.querySelectorAll("path.area"))
    path.classList.toggle("chosen", path.dataset.name === state.area);
  label();
  if (!state.frames) return;
  remember();
  showCells(); // says when each reaches the place
}

function cellsOf(answer) { // an area is shown as its highest cell, with the mean next to it
  if (!answer.name) return answer;
  const highest = (pairs) => pairs && Object.fromEntries(Object.entries(pairs).map(([t, pair]) => [t, pair.maximum]));
  const one = (e) => ({ ...e, rain_rate: e.rain_rate.maximum, mean: e.rain_rate.mean, quantiles: highest(e.quantiles),
    exceedance_probability: highest(e.exceedance_probability) });
  return { ...answer, observed: answer.observed.map(one), forecast: answer.forecast.map(one) };
}

function press() {
  for (const button of document.querySelectorAll("#areas button"))
    button.setAttribute("aria-pressed", button.textContent === state.area);
}

async function listAreas() {
  $("areas").hidden = !state.frames.areas.length;
  if ($("areas").hidden) return;
  const { features } = await ask("v1/area");
  const chances = levels(features[0].properties.most.exceedance_probability);
  const threshold = chances.includes("1") ? "1" : chances[0];
  const heads = ["Area", "Rain", "Highest mm/h", ...(threshold ? [`≥ ${threshold} mm/h`] : [])];
  const rows = features.map(({ properties: { name, arrival: rain, most } }) => {
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: name });
    button.addEventListener("click", () => area(name));
    const when = !rain.known ? "missing" : rain.raining ? "now" : rain.time ? `in ${rain.lead_minutes} min` : "not likely";
    return [button, when, number(most.rain_rate.maximum),
      ...(threshold ? [percent(most.exceedance_probability[threshold].maximum)] : [])];
  });
  fill($("areas").querySelector("table"), [heads, ...rows]);
  press();
}

const levels = (pairs) => Object.keys(pairs || {}).sort((a, b) => a - b); // JavaScript puts "1" before "0.1"
const number = (value) => value === null || value === undefined ? "–" : value.toFixed(1);
const percent = (value) => value === null || value === undefined ? "–" : `${Math.round(100 * value)} %`;

function fill(table, rows) { // the first row has the heads
  table.replaceChildren(...rows.map((row, r) => {
    const line = document.createElement("tr");
    for (const content of row) {
      const cell = document.createElement(r ? "td" : "th");
      if (!r) cell.scope = "col";
      cell.append(content);
      line.append(cell);
    }
    return line;
  }));
}

function arrival({ name, arrival: rain, forecast }) {
  if (!rain.known) return "Missing: neither seen nor forecast here.";
  const chance = rain.probability === null ? "" : ` (${Math.round(100 * rain.probability)} % for ${rain.threshold} mm/h)`;
  const here = rain.time && local(rain.time);
  if (rain.raining) return name ? "it rains." : "It rains here.";
  if (rain.time) return `Rain in ${rain.lead_minutes} minutes, at ${rain.time.slice(11, 16)} UTC${here && `, ${here}`}${chance}.`;
  return `No rain likely in the next ${forecast[forecast.length - 1].lead_minutes} minutes.`;
}

function chart({ name, observed, forecast, start }) {
  const svg = $("chart"), W = 480, H = 256, left = 38, right = 8, top = 20, bottom = 34;
  const entries = [...observed, ...forecast], times = entries.map((e) => Date.parse(e.time));
  const first = Math.min(...times), last = Math.max(...times);
  const of = (name) => (e) => e.quantiles ? e.quantiles[name] : null;
  const most = Math.max(2, ...entries.map((e) => Math.max(e.rain_rate || 0, of("0.9")(e) || 0)));
  const high = [2, 5, 10, 20, 50, 100, 200, 1e4].find((rate) => rate >= most);
  const x = (time) => left + (W - left - right) * (Date.parse(time) - first) / (last - first || 1);
  const y = (rate) => H - bottom - (H - bottom - top) * Math.sqrt(Math.min(rate, high) / high); // small rates are seen too
  const line = (list, get) => {
    let d = "", pen = "M";
    for (const e of list) {
      const rate = get(e);
      if (rate === null || rate === undefined) { pen = "M"; continue; }
      d += `${pen}${x(e.time).toFixed(1)} ${y(rate).toFixed(1)}`;
      pen = "L";
    }
    return d;
  };
  svg.setAttribute("viewBox", `0 0 ${W} ${H}`);
  svg.replaceChildren();
  const add = (name, attributes, text) => svg.append(element(name, attributes, text));
  for (const rate of [0, high / 10, high / 2, high]) {
    add("path", { d: `M${left} ${y(rate)}H${W - right}`, stroke: "#d5dce3" });
    add("text", { x: left - 4, y: y(rate) + 4, "text-anchor": "end" }, `${rate}`);
  }
  add("text", { x: 2, y: 9 }, "mm/h");
  const apart = [5, 10, 15, 30, 60, 120, 360, 1440].map((m) => m * 60000).find((step) => (last - first) / step <= 6);
  for (let time = Math.ceil(first / apart) * apart; time <= last; time += apart) {
    const text = new Date(time).toISOString();
    add("path", { d: `M${x(text)} ${H - bottom}v4`, stroke: "#4a5866" });
    add("text", { x: x(text), y: H - bottom + 16, "text-anchor": "middle" }, text.slice(11, 16));
  }
  add("text", { x: (W + left) / 2, y: H - 3, "text-anchor": "middle" }, "UTC");
  const banded = forecast.filter((e) => e.quantiles && e.quantiles["0.9"] !== null);
  if (banded.length)
    add("path", { fill: "#dccfe9", d: `${line(banded, of("0.9"))}${line([...banded].reverse(), of("0.1")).replace("M", "L")}Z` });
  add("path", { d: `M${x(start)} ${top}V${H - bottom}`, stroke: "#4a5866", "stroke-dasharray": "4 3" });
  add("path", { d: line(forecast, name ? (e) => e.mean : of("0.5")), fill: "none", stroke: "#7547a2", "stroke-width": 2, "stroke-dasharray": "2 4" });
  add("path", { d: line(forecast, (e) => e.rain_rate), fill: "none", stroke: "#2262ae", "stroke-width": 2.5 });
  add("path", { d: line(observed, (e) => e.rain_rate), fill: "none", stroke: "#000", "stroke-width": 2 });
  svg.setAttribute("aria-label", `Rain rate from ${utc(entries[0].time)} on, at most ${most.toFixed(1)} mm/h; the table has the numbers`);
}

function table({ name, observed, forecast }) {
  const chances = levels(forecast[0].exceedance_probability).filter((t, k, all) => all.length <= 3 || [0, 2, 4].includes(k));
  const heads = ["UTC", "mm/h", ...(name ? ["mean"] : []), ...(forecast[0].quantiles ? ["10 to 90 %"] : []), ...chances.map((t) => `≥ ${t}`)];
  const rates = (e) => [number(e.rain_rate), ...(name ? [number(e.mean)] : [])];
  const rows = [heads, ...observed.filter((e) => e.time <= state.frames.start).map((e) => [`${e.time.slice(11, 16)} observed`, ...rates(e)]),
    ...forecast.map((e) => [e.time.slice(11, 16), ...rates(e),
      ...(e.quantiles ? [`${number(e.quantiles["0.1"])} to ${number(e.quantiles["0.9"])}`] : []),
      ...chances.map((t) => percent(e.exceedance_probability[t]))])];
  fill(document.querySelector("#numbers table"), rows);
}

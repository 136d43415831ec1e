// The page: frames of rain on a map, a slider, and what comes at a place.
"use strict";

const $ = (name) => document.getElementById(name);
const STEP = 350, PAUSE = 1400, LOOK = 20000; // milliseconds: a frame, the last frame, a new forecast
const SVG = "http://www.w3.org/2000/svg";
const state = { frames: null, map: null, n: 0, quantity: "rain", place: null, timer: null };
let pictures = new Map(); // URL -> Image; of one case

function element(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

async function ask(url) {
  const response = await fetch(url);
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error);
  return answer;
}

function note(sentences) {
  $("notes").hidden = !sentences.length;
  $("notes").textContent = sentences.join(" ");
}

// --- a forecast, and the one that takes its place ---

async function look() {
  try {
    const frames = await ask("frames");
    note(frames.notes);
    if (!state.frames || frames.case !== state.frames.case) await take(frames);
  } catch (error) {
    note([error instanceof TypeError ? "The server cannot be reached; trying again." : `${error.message}.`]);
  }
}

async function take(frames) {
  const before = state.frames && state.frames.times[state.n];
  state.map = await ask(`map?case=${frames.case}`);
  state.frames = frames;
  pictures = new Map();
  const kept = frames.times.indexOf(before);
  const minutes = new URLSearchParams(location.hash.slice(1)).get("lead");
  const wanted = before ? kept : minutes === null ? -1 : frames.times.indexOf(after(Number(minutes)));
  state.n = wanted >= 0 ? wanted : Math.max(frames.observed - 1, 0);
  const flags = (frames.flags || []).map((flag) => typeof flag === "string" ? flag : JSON.stringify(flag));
  $("about").textContent = [frames.simulated && "simulated data", frames.station, `method ${frames.method}`,
    `from ${utc(frames.start)}`, ...flags].filter(Boolean).join(" · ");
  $("quantity").replaceChildren(...frames.quantities.map(
    (q) => new Option(`${q.title}, ${frames.scales[q.scale].units}`, q.name)));
  if (!frames.quantities.some((q) => q.name === state.quantity)) state.quantity = "rain";
  $("quantity").value = state.quantity;
  $("controls").disabled = false;
  $("slider").max = frames.times.length - 1;
  const [seen, coming] = $("ends").children;
  seen.style.flex = Math.max(frames.observed - 0.5, 0);
  coming.style.flex = frames.times.length - frames.observed - 0.5;
  seen.hidden = !frames.observed;
  drawMap();
  show();
  if (state.place) point(...state.place);
}

const after = (minutes) =>
  new Date(Date.parse(state.frames.start) + minutes * 60000).toISOString().replace(".000", "");
const utc = (time) => `${time.slice(0, 10)} ${time.slice(11, 16)} UTC`;
const leadOf = (time) => (Date.parse(time) - Date.parse(state.frames.start)) / 60000;
const two = (minutes) => minutes > 0 ? `+${minutes} min` : `${minutes} min`.replace("-", "−");
const local = (time) => !new Date(time).getTimezoneOffset() ? "" : new Intl.DateTimeFormat(undefined, { weekday: "short", hour: "2-digit", minute: "2-digit",
  timeZoneName: "short" }).format(new Date(time));

// --- the map ---

function drawMap() {
  const map = state.map, svg = $("lines");
  $("map").style.aspectRatio = `${map.nx * map.dx} / ${map.ny * map.dy}`;
  Object.assign($("field"), { width: map.nx, height: map.ny });
  svg.setAttribute("viewBox", `0 0 ${map.nx} ${map.ny}`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.replaceChildren();
  for (const [kind, lines] of Object.entries(map.lines)) {
    let d = "";
    for (const line of lines)
      for (let i = 0; i < line.length; i += 2) d += `${i ? "L" : "M"}${line[i]} ${line[i + 1]}`;
    svg.append(element("path", { class: kind, d }));
  }
  svg.append(element("g", { id: "labels" }));
  label();
}

function label() { // texts and the mark keep their size in pixels, whatever the width
  if (!state.map) return;
  const map = state.map, box = $("map").getBoundingClientRect();
  const sx = map.nx / box.width, sy = map.ny / box.height, group = $("labels");
  group.replaceChildren();
  const put = (x, y, made) => {
    const g = element("g", { transform: `translate(${x} ${y}) scale(${sx} ${sy})` });
    g.append(made);
    group.append(g);
  };
  for (const { text, x, y, kind } of map.labels) {
    if (x < 0 || y < 0 || x > map.nx || y > map.ny) continue;
    const [dx, dy] = kind === "N" ? [3, -3] : kind === "E" ? [3, -4] : [2, 12];
    put(x, y, element("text", { x: dx, y: dy }, text));
  }
  if (state.cell)
    put(state.cell.column + 0.5, map.ny - state.cell.row - 0.5,
      element("path", { id: "mark", d: "M-11 0H-4M4 0H11M0 -11V-4M0 4V11M-6 0A6 6 0 1 0 6 0A6 6 0 1 0 -6 0" }));
}

function quantityOf(n) { // before the forecast there is only what was observed
  const wanted = state.frames.quantities.find((q) => q.name === state.quantity);
  return n >= wanted.first ? wanted : state.frames.quantities[0];
}

function picture(n) {
  const url = `frame/${quantityOf(n).name}/${n}.png?case=${state.frames.case}`;
  if (!pictures.has(url)) {
    const image = new Image();
    image.src = url;
    pictures.set(url, image);
  }
  return pictures.get(url);
}

function show() {
  const { frames, n } = state;
  if (!frames) return;
  const time = frames.times[n], seen = n < frames.observed, quantity = quantityOf(n);
  const lead = seen ? `observed${leadOf(time) ? ` ${two(leadOf(time))}` : ""}` : two(leadOf(time));
  $("utc").textContent = utc(time);
  $("local").textContent = local(time);
  $("lead").textContent = lead;
  $("lead").className = seen ? "observed" : "";
  $("slider").value = n;
  $("slider").setAttribute("aria-valuetext", `${utc(time)}, ${lead}`);
  $("map").setAttribute("aria-label", `Map: ${quantity.title}, ${utc(time)}, ${lead}`);
  legend(quantity);
  const image = picture(n), canvas = $("field");
  image.decode().then(() => {
    if (n !== state.n || image !== picture(n)) return; // another is wanted meanwhile
    const context = canvas.getContext("2d");
    context.clearRect(0, 0, canvas.width, canvas.height);
    context.drawImage(image, 0, 0);
    canvas.dataset.shown = n;
    picture((n + 1) % frames.times.length);
  }, () => look()); // the forecast was replaced
  remember();
}

function legend({ title, scale }) {
  const { levels, colours, units, missing } = state.frames.scales[scale];
  $("legend").setAttribute("aria-label", `Colours: ${title} in ${units} from ${levels[0]} to ` +
    `${levels[levels.length - 1]} and more; nothing where it is less, grey where missing`);
  const parts = colours.map((colour, k) => [colour, `${levels[k]}`]);
  $("legend").replaceChildren(...[...parts, [missing, "missing"]].map(([colour, text]) => {
    const part = document.createElement("span"), words = document.createElement("b");
    part.style.background = colour;
    words.textContent = text;
    part.append(words);
    return part;
  }));
}

function remember() {
  const parts = new URLSearchParams({ quantity: state.quantity, lead: leadOf(state.frames.times[state.n]) });
  if (state.place) {
    parts.set("lat", state.place[0]);
    parts.set("lon", state.place[1]);
  }
  history.replaceState(null, "", `#${parts}`);
}

// --- time ---

function go(n) {
  if (!state.frames) return;
  const count = state.frames.times.length;
  state.n = (n + count) % count;
  show();
}

function play(wanted) {
  clearTimeout(state.timer);
  state.timer = null;
  $("play").textContent = wanted ? "❚❚ Pause" : "▶ Play";
  $("play").setAttribute("aria-label", wanted ? "Pause" : "Play");
  if (wanted) state.timer = setTimeout(tick, STEP);
}

function tick() {
  // Waits for a picture that is not there yet, so that none is left out.
  if (state.frames && $("field").dataset.shown === String(state.n)) go(state.n + 1);
  const last = state.frames && state.n === state.frames.times.length - 1;
  state.timer = setTimeout(tick, last ? PAUSE : STEP);
}

// --- a place ---

function degrees(event) { // between the nodes of the base map
  const map = state.map, box = $("map").getBoundingClientRect();
  const along = (nodes, at) => {
    let k = 0;
    while (k < nodes.length - 2 && nodes[k + 1] <= at) k += 1;
    return [k, (at - nodes[k]) / (nodes[k + 1] - nodes[k] || 1)];
  };
  const [i, s] = along(map.columns, (event.clientX - box.left) / box.width * map.nx);
  const [j, t] = along(map.rows, (event.clientY - box.top) / box.height * map.ny);
  const at = (f) => (1 - t) * ((1 - s) * f[j][i] + s * f[j][i + 1]) + t * ((1 - s) * f[j + 1][i] + s * f[j + 1][i + 1]);
  return [at(map.latitude).toFixed(4), at(map.longitude).toFixed(4)];
}

async function point(lat, lon) {
  state.place = [lat, lon];
  [$("lat").value, $("lon").value] = [lat, lon];
  try {
    const answer = await ask(`v1/point?lat=${encodeURIComponent(lat)}&lon=${encodeURIComponent(lon)}`);
    state.cell = answer.cell;
    $("arrival").textContent = arrival(answer);
    chart(answer);
    table(answer);
    for (const part of ["chart", "key", "numbers"]) $(part).toggleAttribute("hidden", false);
  } catch (error) {
    $("arrival").textContent = `${error.message}.`;
  }
  label();
  if (state.frames) remember();
}

function arrival({ arrival: rain, forecast }) {
  if (!rain.known) return "Missing: neither seen nor forecast here.";
  const chance = rain.probability === null ? "" : ` (${Math.round(100 * rain.probability)} % for ${rain.threshold} mm/h)`;
  const here = rain.time && local(rain.time);
  if (rain.raining) return "It rains here.";
  if (rain.time) return `Rain in ${rain.lead_minutes} minutes, at ${rain.time.slice(11, 16)} UTC${here && `, ${here}`}${chance}.`;
  return `No rain likely in the next ${forecast[forecast.length - 1].lead_minutes} minutes.`;
}

function chart({ observed, forecast, start }) {
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
  add("path", { d: line(forecast, of("0.5")), fill: "none", stroke: "#7547a2", "stroke-width": 2, "stroke-dasharray": "2 4" });
  add("path", { d: line(forecast, (e) => e.rain_rate), fill: "none", stroke: "#2262ae", "stroke-width": 2.5 });
  add("path", { d: line(observed, (e) => e.rain_rate), fill: "none", stroke: "#000", "stroke-width": 2 });
  svg.setAttribute("aria-label", `Rain rate from ${utc(entries[0].time)} on, at most ${most.toFixed(1)} mm/h; the table has the numbers`);
}

function table({ observed, forecast }) {
  const number = (value) => value === null || value === undefined ? "–" : value.toFixed(1);
  const percent = (value) => value === null || value === undefined ? "–" : `${Math.round(100 * value)} %`;
  const chances = Object.keys(forecast[0].exceedance_probability || {}).filter((t, k, all) => all.length <= 3 || [0, 2, 4].includes(k));
  const heads = ["UTC", "mm/h", ...(forecast[0].quantiles ? ["10 to 90 %"] : []), ...chances.map((t) => `≥ ${t}`)];
  const rows = [heads, ...observed.filter((e) => e.time <= state.frames.start).map((e) => [`${e.time.slice(11, 16)} observed`, number(e.rain_rate)]),
    ...forecast.map((e) => [e.time.slice(11, 16), number(e.rain_rate),
      ...(e.quantiles ? [`${number(e.quantiles["0.1"])} to ${number(e.quantiles["0.9"])}`] : []),
      ...chances.map((t) => percent(e.exceedance_probability[t]))])];
  document.querySelector("#numbers table").replaceChildren(...rows.map((row, r) => {
    const line = document.createElement("tr");
    for (const text of row) {
      const cell = document.createElement(r ? "td" : "th");
      cell.textContent = text;
      line.append(cell);
    }
    return line;
  }));
}

// --- what a person does ---

$("slider").addEventListener("input", () => { play(false); go(Number($("slider").value)); });
$("play").addEventListener("click", () => play(!state.timer));
$("back").addEventListener("click", () => { play(false); go(state.n - 1); });
$("next").addEventListener("click", () => { play(false); go(state.n + 1); });
$("quantity").addEventListener("change", () => { state.quantity = $("quantity").value; show(); });
$("map").addEventListener("click", (event) => { if (state.map) point(...degrees(event)); });
$("where").addEventListener("submit", (event) => { event.preventDefault(); point($("lat").value, $("lon").value); });
document.addEventListener("keydown", (event) => {
  if (!state.frames || event.target.closest("input, select, button, summary, a") || event.ctrlKey || event.altKey || event.metaKey) return;
  const actions = { " ": () => play(!state.timer), ArrowLeft: () => go(state.n - 1), ArrowRight: () => go(state.n + 1),
    Home: () => go(0), End: () => go(-1) };
  if (!actions[event.key]) return;
  event.preventDefault();
  if (event.key !== " ") play(false);
  actions[event.key]();
});
new ResizeObserver(label).observe($("map"));

const asked = new URLSearchParams(location.hash.slice(1));
state.quantity = asked.get("quantity") || "rain";
if (asked.has("lat") && asked.has("lon")) state.place = [asked.get("lat"), asked.get("lon")];
look();
setInterval(look, LOOK);

// The page: frames of rain on a map, a slider, and what comes at a place.
"use strict";

const STEP = 350, PAUSE = 1400, LOOK = 20000; // milliseconds: a frame, the last frame, a new forecast
let pictures = new Map(); // URL -> Image; of one case

async function ask(url) {
  const response = await fetch(url, { cache: "no-cache" }); // asks whether what it has is still so
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
    const over = !frames.simulated && Date.now() > Date.parse(frames.times[frames.times.length - 1]);
    note([...frames.notes, ...(over ? ["The newest forecast is over: all of it lies in the past."] : [])]);
    if (!state.frames || frames.case !== state.frames.case) await take(frames);
  } catch (error) {
    note([error instanceof TypeError ? "The server cannot be reached; trying again." : `${error.message}.`]);
  }
}

async function take(frames) {
  const before = state.frames && state.frames.times[state.n];
  const map = await ask(`${base(frames)}map?case=${frames.case}`);
  const sameGrid = state.map && state.map.nx === map.nx && state.map.ny === map.ny;
  state.map = map;
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
  $("questions").hidden = Boolean(frames.base);
  $("slider").max = frames.times.length - 1;
  const [seen, coming] = $("ends").children;
  seen.style.flex = Math.max(frames.observed - 0.5, 0);
  coming.style.flex = frames.times.length - frames.observed - 0.5;
  seen.hidden = !frames.observed;
  if (before && !sameGrid) state.view = { k: 1, x: 0, y: 0 };
  drawMap();
  show();
  await listAreas();
  if (state.area) area(state.area);
  else if (state.place) point(...state.place);
}

// Files, which `nowcast serve --export` writes, are in a folder for each case.
const base = (frames = state.frames) => frames && frames.base || "";
const after = (minutes) =>
  new Date(Date.parse(state.frames.start) + minutes * 60000).toISOString().replace(".000", "");
const utc = (time) => `${time.slice(0, 10)} ${time.slice(11, 16)} UTC`;
const leadOf = (time) => (Date.parse(time) - Date.parse(state.frames.start)) / 60000;
const two = (minutes) => minutes > 0 ? `+${minutes} min` : `${minutes} min`.replace("-", "−");
const local = (time) => !new Date(time).getTimezoneOffset() ? "" : new Intl.DateTimeFormat(undefined, { weekday: "short", hour: "2-digit", minute: "2-digit",
  timeZoneName: "short" }).format(new Date(time));

// --- the map ---

function quantityOf(n) { // before the forecast there is only what was observed
  const wanted = state.frames.quantities.find((q) => q.name === state.quantity);
  return n >= wanted.first ? wanted : state.frames.quantities[0];
}

function picture(n) {
  const url = `${base()}frame/${quantityOf(n).name}/${n}.png?case=${state.frames.case}`;
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
  $("shows").textContent = quantity.title;
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
  showCells();
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
  const { k, x, y } = state.view;
  if (k > 1) parts.set("view", [k, x, y].map((value) => value.toFixed(2)));
  if ($("outlined").checked) parts.set("cells", 1);
  if (state.area) parts.set("area", state.area);
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

// --- what a person does ---

$("slider").addEventListener("input", () => { play(false); go(Number($("slider").value)); });
$("play").addEventListener("click", () => play(!state.timer));
$("back").addEventListener("click", () => { play(false); go(state.n - 1); });
$("next").addEventListener("click", () => { play(false); go(state.n + 1); });
$("quantity").addEventListener("change", () => { state.quantity = $("quantity").value; show(); });
$("outlined").addEventListener("change", () => { showCells(); if (state.frames) remember(); });
$("map").addEventListener("click", (event) => { if (state.map && dragged < 6) point(...degrees(event)); });
$("where").addEventListener("submit", (event) => { event.preventDefault(); point($("lat").value, $("lon").value); });
document.addEventListener("keydown", (event) => {
  if (!state.frames || event.target.closest("input, select, button, summary, a") || event.ctrlKey || event.altKey || event.metaKey) return;
  const actions = { " ": () => play(!state.timer), ArrowLeft: () => go(state.n - 1), ArrowRight: () => go(state.n + 1),
    Home: () => go(0), End: () => go(-1), "+": () => zoom(2), "-": () => zoom(0.5), 0: () => zoom(0) };
  if (!actions[event.key]) return;
  event.preventDefault();
  if (event.key.length > 1) play(false);
  actions[event.key]();
});
new ResizeObserver(label).observe($("map"));

const asked = new URLSearchParams(location.hash.slice(1));
state.quantity = asked.get("quantity") || "rain";
state.area = asked.get("area");
$("outlined").checked = asked.has("cells");
const [k, x, y] = (asked.get("view") || "1,0,0").split(",").map(Number);
if (k + x + y > 0) state.view = { k, x, y };
if (asked.has("lat") && asked.has("lon")) state.place = [asked.get("lat"), asked.get("lon")];
look();
setInterval(look, LOOK);

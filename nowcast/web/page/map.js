// The map: what lies over the rain (coastlines, degrees, rings, areas, cells, a mark), zoom and pan.
"use strict";

const $ = (name) => document.getElementById(name);
const state = { frames: null, map: null, n: 0, quantity: "rain", place: null, area: null, timer: null,
  view: { k: 1, x: 0, y: 0 } };
const SVG = "http://www.w3.org/2000/svg";

function element(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

function drawMap() {
  const map = state.map, svg = $("lines");
  $("map").style.aspectRatio = `${map.nx * map.dx} / ${map.ny * map.dy}`;
  Object.assign($("field"), { width: map.nx, height: map.ny });
  svg.setAttribute("preserveAspectRatio", "none");
  svg.replaceChildren();
  for (const [kind, lines] of Object.entries(map.lines)) svg.append(element("path", { class: kind, d: through(lines) }));
  for (const [name, lines] of Object.entries(map.areas))
    svg.append(element("path", { class: `area${name === state.area ? " chosen" : ""}`, "data-name": name, d: through(lines) }));
  for (const id of ["cells", "labels"]) svg.append(element("g", { id }));
  lookAt(state.view);
}

// --- zoom and pan ---

function lookAt({ k, x, y }) { // magnified k times, from this cell on at the left and the top
  const { nx, ny } = state.map, within = (value, most) => Math.min(Math.max(value, 0), most);
  k = within(k - 1, 15) + 1;
  [x, y] = [within(x, nx - nx / k), within(y, ny - ny / k)];
  state.view = { k, x, y };
  $("lines").setAttribute("viewBox", `${x} ${y} ${nx / k} ${ny / k}`);
  $("field").style.transform = `scale(${k}) translate(${-100 * x / nx}%, ${-100 * y / ny}%)`;
  $("map").classList.toggle("near", k > 1);
  [$("out").disabled, $("whole").disabled, $("in").disabled] = [k === 1, k === 1, k === 16];
  label();
}

function zoom(factor, [px, py] = [0.5, 0.5], [qx, qy] = [px, py]) { // moves the point at p to q, in shares of the map
  if (!state.map) return;
  const { nx, ny } = state.map, { k, x, y } = state.view, near = Math.min(Math.max(k * factor, 1), 16);
  lookAt({ k: near, x: x + px * nx / k - qx * nx / near, y: y + py * ny / k - qy * ny / near });
  if (state.frames) remember();
}

function shares(event) {
  const box = $("map").getBoundingClientRect();
  return [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
}

const fingers = new Map(); // pointer -> where it is
let dragged = 0; // pixels since the first one came down

function middle() { // and how far two fingers are apart
  const all = [...fingers.values()], mean = (axis) => all.reduce((sum, p) => sum + p[axis], 0) / all.length;
  return [[mean(0), mean(1)], all.length < 2 ? 1 : Math.hypot(all[0][0] - all[1][0], all[0][1] - all[1][1])];
}

function drag(event) {
  if (!fingers.has(event.pointerId)) return;
  const [from, apart] = middle();
  fingers.set(event.pointerId, shares(event));
  const [to, wider] = middle();
  dragged += Math.abs(event.movementX) + Math.abs(event.movementY);
  zoom(wider / apart, from, to);
}

$("map").addEventListener("pointerdown", (event) => {
  if (!fingers.size) dragged = 0;
  fingers.set(event.pointerId, shares(event));
  $("map").setPointerCapture(event.pointerId);
});
$("map").addEventListener("pointermove", drag);
for (const end of ["pointerup", "pointercancel"]) $("map").addEventListener(end, (event) => fingers.delete(event.pointerId));
$("map").addEventListener("wheel", (event) => {
  if (event.deltaY > 0 && state.view.k === 1) return; // the page scrolls on
  event.preventDefault();
  zoom(2 ** (-event.deltaY / 200), shares(event));
}, { passive: false });
for (const [id, factor] of [["in", 2], ["out", 0.5], ["whole", 0]]) $(id).addEventListener("click", () => zoom(factor));

// --- cells ---

async function showCells() {
  const { frames } = state, group = $("cells");
  if (!frames) return;
  group.replaceChildren();
  $("outlines").replaceChildren();
  if (!$("outlined").checked) return;
  if (!state.cells || state.cells.case !== frames.case) {
    state.cells = { case: frames.case, frames: null, problem: "" }; // asked for once
    try {
      state.cells = await ask(`${base()}cells?case=${frames.case}`);
    } catch (error) {
      state.cells.problem = `${error.message}.`;
    }
    return showCells();
  }
  if (!state.cells.frames) return void ($("outlines").textContent = state.cells.problem || "Cells are being outlined.");
  const shown = state.cells.frames[state.n], list = document.createElement("table");
  for (const cell of shown) {
    const path = element("path", { class: "cell", d: through(cell.outline) });
    path.append(element("title", {}, words(cell).join(", ")));
    group.append(path);
    if (cell.way) group.append(element("path", { class: "way", d: through([cell.way]) }));
    if (cell.trail.length > 2) group.append(element("path", { class: "trail", d: through([cell.trail]) }));
  }
  const nearest = state.cell ? shown.filter((cell) => reaches(cell)).sort((a, b) => reaches(a)[0] - reaches(b)[0]) : [];
  const listed = [...nearest, ...shown.filter((cell) => !nearest.includes(cell))].slice(0, 8);
  const here = (cell) => state.cell ? [reaches(cell) ? `in ${reaches(cell)[0]} to ${reaches(cell)[1]} min` : "–"] : [];
  fill(list, [["Cell", "mm/h", "km²", "Moves", "Age, min", ...(state.cell ? ["At the place"] : [])],
    ...listed.map((cell) => [...words(cell), ...here(cell)])]);
  $("outlines").replaceChildren(shown.length ? list : "No rain cells.");
}

function reaches({ outline, way }) { // minutes from and to which it lies over the place, if it moves on as it is
  if (!way) return null;
  const x = state.cell.column + 0.5, y = state.map.ny - state.cell.row - 0.5, minutes = [];
  for (let m = 0; m <= 60; m += 1) {
    const px = x - (way[2] - way[0]) * m / 30, py = y - (way[3] - way[1]) * m / 30;
    let inside = false;
    for (const ring of outline)
      for (let i = 2; i < ring.length; i += 2)
        if ((ring[i - 1] > py) !== (ring[i + 1] > py) &&
          px < ring[i - 2] + (py - ring[i - 1]) / (ring[i + 1] - ring[i - 1]) * (ring[i] - ring[i - 2])) inside = !inside;
    if (inside) minutes.push(m);
  }
  return minutes.length ? [minutes[0], minutes[minutes.length - 1]] : null;
}

function words({ track, highest, area, speed, direction, age }) {
  const winds = ["N", "NE", "E", "SE", "S", "SW", "W", "NW"];
  const motion = speed === null ? "–" : `${Math.round(3.6 * speed)} km/h ${winds[Math.round(direction / 45) % 8]}`;
  return [String(track), number(highest), area.toFixed(0), motion, age.toFixed(0)];
}

// --- texts ---

function through(lines) { // each a list of x, y, x, y, ... in cells
  let d = "";
  for (const line of lines)
    for (let i = 0; i < line.length; i += 2) d += `${i ? "L" : "M"}${line[i]} ${line[i + 1]}`;
  return d;
}

function edge(line, axis, at) { // where a line crosses an edge of the view
  for (let i = 2; i < line.length; i += 2) {
    const [a, b] = [line[i - 2 + axis], line[i + axis]];
    if ((a - at) * (b - at) > 0 || a === b) continue;
    const [c, d] = [line[i - 1 - axis], line[i + 1 - axis]];
    return c + (d - c) * (at - a) / (b - a);
  }
  return NaN;
}

function label() { // texts and the mark keep their size in pixels, whatever the width
  if (!state.map) return;
  const { nx, ny, labels, lines } = state.map, { k, x: left, y: top } = state.view;
  const box = $("map").getBoundingClientRect(), group = $("labels"), bottom = top + ny / k;
  const [sx, sy] = [nx / k / box.width, ny / k / box.height];
  group.replaceChildren();
  const put = (x, y, made) => {
    if (!(x >= left && y >= top && x <= left + nx / k && y <= bottom)) return;
    const g = element("g", { transform: `translate(${x} ${y}) scale(${sx} ${sy})` });
    g.append(made);
    group.append(g);
  };
  labels.forEach(({ text, x, y, kind }, n) => {
    if (kind === "N") put(left, edge(lines.degrees[n], 0, left), element("text", { x: 3, y: -3 }, text));
    else if (kind === "E") put(edge(lines.degrees[n], 1, bottom), bottom, element("text", { x: 3, y: -4 }, text));
    else put(x, y, element("text", { x: 2, y: 12 }, text));
  });
  if (state.cell)
    put(state.cell.column + 0.5, ny - state.cell.row - 0.5,
      element("path", { id: "mark", d: "M-11 0H-4M4 0H11M0 -11V-4M0 4V11M-6 0A6 6 0 1 0 6 0A6 6 0 1 0 -6 0" }));
}

function degrees(event) {
  const { nx, ny } = state.map, { k, x, y } = state.view, [px, py] = shares(event);
  return degreesAt(x + px * nx / k, y + py * ny / k).map((value) => value.toFixed(4));
}

function degreesAt(x, y) { // of a place in cells, between the nodes of the base map
  const { columns, rows, latitude, longitude } = state.map;
  const along = (nodes, at) => {
    let n = 0;
    while (n < nodes.length - 2 && nodes[n + 1] <= at) n += 1;
    return [n, (at - nodes[n]) / (nodes[n + 1] - nodes[n] || 1)];
  };
  const [i, s] = along(columns, x), [j, t] = along(rows, y);
  const at = (f) => (1 - t) * ((1 - s) * f[j][i] + s * f[j][i + 1]) + t * ((1 - s) * f[j + 1][i] + s * f[j + 1][i + 1]);
  return [at(latitude), at(longitude)];
}

function cellAt(lat, lon) { // the other way round, by Newton's steps
  const { nx, ny } = state.map;
  let [x, y] = [nx / 2, ny / 2];
  for (let step = 0; step < 12; step += 1) {
    const here = degreesAt(x, y), east = degreesAt(x + 0.5, y), south = degreesAt(x, y + 0.5);
    const [a, b, c, d] = [east[0] - here[0], south[0] - here[0], east[1] - here[1], south[1] - here[1]].map((value) => 2 * value);
    const [e, f] = [lat - here[0], lon - here[1]], area = a * d - b * c;
    [x, y] = [x + (e * d - b * f) / area, y + (a * f - c * e) / area];
  }
  if (!(x >= 0 && y >= 0 && x < nx && y < ny)) throw new Error("Expected a place on the map");
  return { row: ny - 1 - Math.floor(y), column: Math.floor(x) };
}

// What lies over the rain: coastlines, degrees, rings, areas, and the mark of a place.
"use strict";

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
  svg.setAttribute("viewBox", `0 0 ${map.nx} ${map.ny}`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.replaceChildren();
  for (const [kind, lines] of Object.entries(map.lines)) svg.append(element("path", { class: kind, d: through(lines) }));
  for (const [name, lines] of Object.entries(map.areas))
    svg.append(element("path", { class: `area${name === state.area ? " chosen" : ""}`, "data-name": name, d: through(lines) }));
  svg.append(element("g", { id: "labels" }));
  label();
}

function through(lines) { // each a list of x, y, x, y, ... in cells
  let d = "";
  for (const line of lines)
    for (let i = 0; i < line.length; i += 2) d += `${i ? "L" : "M"}${line[i]} ${line[i + 1]}`;
  return d;
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

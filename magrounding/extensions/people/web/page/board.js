// The board: a frame's facts as SVG. Whatever a server says is set as text or attribute, never as markup.
const NS = "http://www.w3.org/2000/svg", CELL = 100;

function shape(name, attributes, parent, text) {
  const made = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  parent.append(made);
  return made;
}

export const label = figure => "agent" in figure ? `agent ${figure.agent}` : [figure.quality, figure.name].filter(Boolean).join(" ");

// Where each figure is drawn: [x, y, side]; several in a cell share it.
function places(figures) {
  const cells = new Map();
  figures.forEach((figure, k) => {
    const key = figure.at.join();
    cells.set(key, [...(cells.get(key) ?? []), k]);
  });
  const found = [];
  for (const together of cells.values()) {
    const across = Math.ceil(Math.sqrt(together.length)), side = CELL / across;
    together.forEach((k, place) => {
      const [row, column] = figures[k].at;
      found[k] = [column * CELL + place % across * side, row * CELL + Math.floor(place / across) * side, side];
    });
  }
  return found;
}

function rings(parent, [x, y, side], agents, colours) {
  const middle = [x + side / 2, y + side / 2], radius = side * .46, length = 2 * Math.PI * radius / agents.length;
  shape("circle", {cx: middle[0], cy: middle[1], r: radius, fill: "none", stroke: "#fff", "stroke-width": 9}, parent);
  agents.forEach((agent, k) => shape("circle", {
    cx: middle[0], cy: middle[1], r: radius, fill: "none", stroke: colours[agent % colours.length], "stroke-width": 6,
    "stroke-dasharray": `${length} ${2 * Math.PI * radius - length}`, "stroke-dashoffset": -k * length,
  }, parent));
}

const TURNS = {right: 0, down: 90, left: 180, up: 270};

export function describe(frame) {
  const hidden = frame.walls.join("").split("?").length - 1;
  const size = `${frame.walls.length} by ${frame.walls[0].length} cells`;
  return size + (hidden ? `, ${hidden} of them out of sight` : "") + frame.figures.map(each => `; ${label(each)}${"agent" in each && each.quality ? ` ${each.quality}` : ""} in row ${each.at[0]}, column ${each.at[1]}`).join("");
}

// What an agent told in the last step, above it or, in the first rows, below; one without a body speaks at the edge.
function bubble(parent, agent, text, from, columns, colour) {
  const lines = [""], side = Math.min(3.2, columns - 1) * CELL;
  for (const word of `agent ${agent}: ${text}`.replace(/ ([,.;:!?])/g, "$1").split(" "))
    if (lines.at(-1).length + word.length < side / 9.5) lines[lines.length - 1] += ` ${word}`;
    else lines.push(word);
  const height = 22 * lines.length + 20, [x, y, own] = from ?? [CELL, CELL, 0];
  const left = Math.max(.8 * CELL, Math.min((columns - .8) * CELL - side, x + own / 2 - side / 2));
  const above = y - height - 14 > .75 * CELL, top = above ? y - height - 14 : y + own + 14, foot = above ? top + height : top;
  const group = shape("g", {class: "bubble", stroke: colour}, parent);
  shape("rect", {x: left, y: top, width: side, height, rx: 14}, group);
  if (from) shape("path", {d: `M${x + own / 2 - 12} ${foot}L${x + own / 2} ${foot + (above ? 14 : -14)}L${x + own / 2 + 12} ${foot}`}, group);
  lines.forEach((line, k) => shape("text", {x: left + side / 2, y: top + 26 + 22 * k, "font-size": 18}, group, line.trim()));
}

export function drawBoard(svg, frame, game, overlays) {
  const rows = frame.walls.length, columns = frame.walls[0].length, parts = document.createElementNS(NS, "g");
  shape("rect", {width: columns * CELL, height: rows * CELL, class: "floor"}, parts);
  let other = "", walls = "", unseen = "";
  for (let row = 0; row < rows; row++) for (let column = 0; column < columns; column++) {
    const square = `M${column * CELL} ${row * CELL}h${CELL}v${CELL}h${-CELL}z`;
    if (frame.walls[row][column] === "#") walls += square;
    else if (frame.walls[row][column] === "?") unseen += square;
    else if ((row + column) % 2) other += square;
  }
  shape("path", {d: other, class: "floor-2"}, parts);
  shape("path", {d: walls, class: "wall"}, parts);
  shape("path", {d: unseen, class: "fog"}, parts);
  const where = places(frame.figures), claimed = {};
  if (overlays.claims)
    for (const [agent, taken] of Object.entries(frame.claims)) for (const k of taken) (claimed[k] ??= []).push(+agent);
  if (overlays.pursues) for (const [agent, k] of Object.entries(frame.pursues ?? {})) {
    const from = where[frame.figures.findIndex(each => each.agent === +agent)], to = where[k];
    if (from && to) shape("line", {
      x1: from[0] + from[2] / 2, y1: from[1] + from[2] / 2, x2: to[0] + to[2] / 2, y2: to[1] + to[2] / 2,
      stroke: game.colours[agent % game.colours.length], "stroke-width": 7, "stroke-dasharray": "14 9", "stroke-linecap": "round", opacity: .85,
    }, parts);
  }
  frame.figures.forEach((figure, k) => {
    const [x, y, side] = where[k], alone = side === CELL, agent = "agent" in figure;
    const words = alone && !agent ? [figure.quality, figure.name].filter(Boolean) : [];
    const inner = side * (.94 - .17 * words.length);
    if (claimed[k]) rings(parts, where[k], claimed[k], game.colours);
    const picture = shape("image", {
      href: `/sprite/${figure.sprite}`, x: x + (side - inner) / 2, y: y + side * .02, width: inner, height: inner,
    }, parts);
    shape("title", {}, picture, label(figure));
    const turn = TURNS[(figure.quality ?? "").replace("facing ", "")];
    if (agent && turn !== undefined)
      shape("path", {d: "M34 -16L50 0L34 16z", fill: "var(--ink)", transform: `translate(${x + side / 2} ${y + side / 2}) rotate(${turn}) scale(${side / CELL})`}, parts);
    words.forEach((word, line) => shape("text", {
      x: x + side / 2, y: y + side * .96 - (words.length - 1 - line) * 17, "font-size": Math.min(17, CELL / (.66 * word.length)),
    }, parts, word));
  });
  for (const [agent, text] of Object.entries(frame.said)) {
    const k = frame.figures.findIndex(each => each.agent === +agent);
    bubble(parts, agent, text, where[k], columns, game.colours[agent % game.colours.length]);
  }
  const closed = frame.walls.every((row, k) => (k % (rows - 1) ? row[0] + row[columns - 1] : row).match(/^#+$/));
  const cut = closed ? .75 * CELL : 0;  // a closed ring of walls is shown at a quarter of its width: nobody stands there
  svg.setAttribute("viewBox", `${cut} ${cut} ${columns * CELL - 2 * cut} ${rows * CELL - 2 * cut}`);
  svg.setAttribute("aria-label", describe(frame));
  svg.replaceChildren(parts);
  svg.classList.toggle("small", svg.clientWidth > 0 && svg.clientWidth / columns < 52);
}

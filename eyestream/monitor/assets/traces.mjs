// Drawings: a feature with its error band, and gaze on a field. Pure: data in, SVG out.

const NS = "http://www.w3.org/2000/svg";

function part(name, attributes, text) {
  const made = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

/** A number in few digits. */
export function brief(value) {
  return value === null || value === undefined ? "–" : String(Number(value.toPrecision(4)));
}

/** Points of a feature over chunks that follow each other, and where chunks begin. */
export function pointsOf(chunks, feature) {
  const points = [], borders = [];
  for (const chunk of chunks) {
    borders.push(chunk.t[0]);
    chunk.values[feature].forEach((value, i) => points.push([chunk.t[0] + i * chunk.t[1], value]));
  }
  return { points, borders };
}

/** The private trace in its band. `axes` draws numbers and borders of chunks too. */
export function drawTrace(svg, chunks, feature, error, unit, axes) {
  const { points, borders } = pointsOf(chunks, feature);
  const known = points.filter(([, value]) => value !== null);
  svg.replaceChildren();
  if (known.length === 0) return;
  const { clientWidth: wide, clientHeight: high } = svg;
  const [left, top, width, height] = axes ? [64, 12, wide - 80, high - 44] : [0, 2, wide, high - 4];
  const values = known.map(([, value]) => value);
  const least = values.reduce((a, b) => Math.min(a, b)) - error, most = values.reduce((a, b) => Math.max(a, b)) + error;
  const from = points[0][0], to = points[points.length - 1][0];
  const x = (t) => left + ((t - from) / (to - from || 1)) * width;
  const y = (value) => top + height * (1 - (value - least) / (most - least || 1));
  const line = (pairs) => pairs.map(([t, value]) => `${x(t).toFixed(1)},${y(value).toFixed(1)}`).join(" ");
  const upper = known.map(([t, value]) => [t, value + error]), lower = known.map(([t, value]) => [t, value - error]);
  if (axes) for (const t of borders) svg.append(part("line", { class: "border", x1: x(t), x2: x(t), y1: top, y2: top + height }));
  if (axes && least < 0 && most > 0) svg.append(part("line", { class: "zero", x1: left, x2: left + width, y1: y(0), y2: y(0) }));
  svg.append(part("polygon", { class: "band", points: line([...upper, ...lower.reverse()]) }));
  svg.append(part("polyline", { class: "trace", points: line(known) }));
  if (!axes) return;
  const end = { "text-anchor": "end" };
  svg.append(part("text", { x: left - 6, y: top + 10, ...end }, brief(most)));
  svg.append(part("text", { x: left - 6, y: top + height, ...end }, brief(least)));
  svg.append(part("text", { x: left, y: top + height + 18 }, `${brief(from)} s`));
  svg.append(part("text", { x: left + width, y: top + height + 18, ...end }, `${brief(to)} s of the session, unit ${unit}`));
}

/** The two columns that are a place in degrees, or null. */
export function fieldOf(meta) {
  const places = meta.names.flatMap((name, i) => (meta.units[i] === "deg" && /(^|_)[xy](_|$)/.test(name) ? [i] : []));
  return places.length === 2 && (meta.names.length === 2 || meta.names.includes("gaze_error")) ? places : null;
}

/** Gaze on a field in degrees: the latest place, its error, and the way to it. */
export function drawField(svg, chunks, columns, error) {
  const [xs, ys] = columns.map((column) => pointsOf(chunks, column).points.map(([, value]) => value));
  const way = xs.map((x, i) => [x, ys[i]]).filter(([x, y]) => x !== null && y !== null).slice(-60);
  svg.replaceChildren();
  const most = Math.max(20, ...way.flat().map(Math.abs)) + 2;
  svg.setAttribute("viewBox", `${-most} ${-most} ${2 * most} ${2 * most}`);
  svg.append(part("line", { class: "border", x1: -most, x2: most, y1: 0, y2: 0 }));
  svg.append(part("line", { class: "border", x1: 0, x2: 0, y1: -most, y2: most }));
  if (way.length === 0) return null;
  const [x, y] = way[way.length - 1];
  svg.append(part("polyline", { class: "trace", points: way.map(([a, b]) => `${a},${-b}`).join(" ") }));
  svg.append(part("ellipse", { class: "band", cx: x, cy: -y, rx: error[0], ry: error[1] }));
  svg.append(part("circle", { class: "now", cx: x, cy: -y, r: most / 40 }));
  return [x, y];
}

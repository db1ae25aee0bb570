// The script of page.html. Serve this folder, and open the page:
//
//     python3 -m http.server --bind 127.0.0.1 --directory examples/javascript 8000
//
// The broker needs a listener for WebSockets. On a laptop: the last two lines of config/mosquitto/plain.conf, without
// "# ". In a deployment: docs/deployment.md, "A web page".

import { line, overWebSocket, values } from "./subscribe.mjs";

const MOST_CHUNKS = 20;
const RETRY_MS = 2000;
const part = (id) => document.getElementById(id);

let chunks = [];
let meta = null;
let socket = null;
let attempt = 0;

/** The feature over the last chunks, in a band as wide as the expected error. */
function draw() {
  const feature = Number(part("feature").value);
  part("last").textContent = line(chunks.at(-1), meta, feature);
  const canvas = part("trace"), pen = canvas.getContext("2d");
  const points = chunks.flatMap((chunk) => Array.from(values(chunk, feature)));
  const error = meta.noise_sd[feature];
  const low = Math.min(...points) - error, high = Math.max(...points) + error;
  const x = (i) => (i / Math.max(points.length - 1, 1)) * canvas.width;
  const y = (value) => canvas.height * (1 - (value - low) / (high - low || 1));
  const colour = getComputedStyle(canvas).color;
  Object.assign(pen, { strokeStyle: colour, fillStyle: colour, lineWidth: 3 });
  pen.clearRect(0, 0, canvas.width, canvas.height);
  const band = new Path2D(), trace = new Path2D();
  points.forEach((value, i) => band.lineTo(x(i), y(value + error)));
  points.map((value, i) => [x(i), y(value - error)]).reverse().forEach(([at, height]) => band.lineTo(at, height));
  points.forEach((value, i) => trace.lineTo(x(i), y(value)));
  pen.globalAlpha = 0.2;
  pen.fill(band);
  pen.globalAlpha = 1;
  pen.stroke(trace);
}

/** Other features: begin again. After a broken link the same description comes once more. */
function describe(said) {
  const known = meta !== null && String(meta.names) === String(said.names);
  meta = said;
  if (known) return;
  chunks = [];
  part("feature").replaceChildren(...meta.names.map((name, i) => new Option(`${name} (${meta.units[i]})`, String(i))));
}

function deliver(leaf, message) {
  if (leaf === "subscribed") part("status").textContent = "connected; no sidecar has said that it serves this device";
  if (leaf === "meta") describe(message);
  if (leaf === "budget") part("budget").textContent = `${message.chunks} chunks are left of the ${message.ceiling}`;
  if (message.wentBack) part("status").textContent = "the ledger went back: what was spent since is spent again";
  if (leaf === "status") part("status").textContent = `${message.state}: ${message.reason}`;
  if (leaf !== "private") return;
  chunks = [...chunks.filter((chunk) => chunk.session === message.session), message].slice(-MOST_CHUNKS);
  draw();
}

/** Connect, and again when the link is lost, until somebody connects elsewhere. */
function connect(own) {
  const options = { device: part("device").value, deliver };
  Object.assign(options, { username: part("username").value, password: part("password").value });
  socket = overWebSocket(part("url").value, options, (reason) => {
    if (own !== attempt) return;
    part("status").textContent = reason;
    setTimeout(() => own === attempt && connect(own), RETRY_MS);
  });
}

part("form").addEventListener("submit", (event) => {
  event.preventDefault();
  attempt++;
  meta = null;
  socket?.close();
  connect(attempt);
});
part("feature").addEventListener("change", () => chunks.length > 0 && draw());

// The page: takes frames as they come and shows the stream that is chosen.

import { brief, drawField, drawTrace, fieldOf } from "./traces.mjs";

const KEPT_CHUNKS = 20;
const at = (id) => document.getElementById(id);
const streams = new Map();
const sidecars = new Map();
let feature = 0;

const STATES = {
  ready: "online: private chunks come",
  window: "paused: the window's ceiling is reached",
  session: "the session's budget is spent, until the next session releases a chunk",
  day: "the day's budget is spent, until midnight UTC",
  lifetime: "the whole budget is spent: no more releases",
  ledger: "the ledger cannot be used: nothing is released",
  calibration: "the calibration does not fit: nothing is released",
  raw_link: "no connection to the tracker",
  owner: "another sidecar serves this device: nothing is released",
  internal: "a fault of the sidecar: nothing is released",
  stopped: "the sidecar has stopped",
  lost: "the sidecar is lost",
};

function streamOf(id) {
  if (!streams.has(id)) streams.set(id, { meta: null, state: null, chunks: [], most: 0 });
  return streams.get(id);
}

function duration(seconds) {
  if (seconds < 120) return `${Math.floor(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  if (minutes < 2880) return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, "0")} min`;
  return `${Math.floor(minutes / 1440)} days`;
}

function say(id, text, bad = false) {
  at(id).textContent = text;
  at(id).classList.toggle("bad", bad);
}

/** The cards. */
function showState(one) {
  const { state, chunks } = one;
  const lost = [...sidecars].filter(([, status]) => status?.[0] === "offline").map(([name]) => name);
  const gone = lost.length > 0 ? `. Sidecar ${lost.join(", ")} is offline` : "";
  if (state !== null) {
    const [word, reason] = state.status ?? ["", ""];
    const silent = state.silent && word === "online";
    say("state", silent ? "online, but chunks are overdue" : STATES[reason] ?? "no word from the sidecar yet", silent || word !== "online");
    const ledger = reason === "ledger" ? "ledger: fails" : word === "online" || word === "exhausted" ? "ledger: works" : "ledger: not known";
    say("links", `broker: ${state.connected ? "connected" : "away"}. ${ledger}${gone}`, !state.connected || lost.length > 0);
    showBudget(one, state.left);
    const refused = Object.entries(state.refusals);
    const count = refused.reduce((sum, [, number]) => sum + number, 0);
    say("refused", count ? `${count} refused` : "nothing refused", count > 0);
    const why = refused.map(([name, number]) => `${name}: ${number}`).join(", ");
    say("missing", `${why}${why ? ". " : ""}${state.missing} chunks missing, ${state.dropped} dropped here`);
  }
  const latest = chunks.at(-1);
  if (latest === undefined) {
    say("age", "no chunk yet");
    say("latency", one.meta ? `one comes every ${duration(one.meta.n / one.meta.rate_hz)}` : "");
    return;
  }
  const passed = Math.max(0, Date.now() / 1000 - latest.came);
  say("age", `${duration(latest.age_s + passed)} old`);
  say("latency", `oldest row of chunk ${latest.index}. It came ${(1000 * latest.latency_s).toFixed(1)} ms later than the fastest`);
}

function showBudget(one, left) {
  if (left === null) return;
  one.most = Math.max(one.most, left.seconds);
  const renewed = left.resumes !== null && left.resumes * 1000 <= Date.now();
  say("left", renewed ? "a new day has begun" : `${(left.seconds / 3600).toFixed(2)} hours`, !renewed && left.chunks === 0);
  at("gauge").max = one.most || 1;
  at("gauge").low = 0.2 * (one.most || 1);
  at("gauge").value = left.seconds;
  const again = left.resumes === null ? "" : `, more at ${new Date(left.resumes * 1000).toISOString().slice(0, 16).replace("T", " ")} UTC`;
  say("ceiling", `${duration(left.seconds)} of releases, ${left.chunks} chunks, of the ${left.ceiling}${again}`);
}

/** The chunks of the newest session. */
function current(one) {
  const session = one.chunks.at(-1)?.session;
  return one.chunks.filter((chunk) => chunk.session === session);
}

function unitOf(meta, i) {
  return meta.units[i] === "1" ? "none" : meta.units[i];
}

/** Buttons, one for each feature. */
function buildFeatures(one) {
  const made = one.meta.names.map((name, i) => {
    const button = document.createElement("button");
    const label = document.createElement("span"), value = document.createElement("span");
    value.className = "value";
    label.textContent = name;
    button.title = name;
    button.type = "button";
    button.dataset.feature = String(i);
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("aria-hidden", "true");
    button.append(label, value, svg);
    return button;
  });
  at("features").replaceChildren(...made);
  feature = Math.min(feature, made.length - 1);
  say("guarantee", one.meta.guarantee);
}

function showFeatures(one) {
  if (one.meta === null) return;
  const chunks = current(one), { meta } = one;
  for (const button of at("features").children) {
    const i = Number(button.dataset.feature), chosen = i === feature;
    button.setAttribute("aria-pressed", String(chosen));
    button.tabIndex = chosen ? 0 : -1;
    const last = chunks.at(-1)?.values[i];
    const [, value, svg] = button.children;
    value.textContent = last ? `${brief(last.at(-1))} ± ${brief(meta.noise_sd[i])}` : "no chunk yet";
    drawTrace(svg, chunks, i, meta.noise_sd[i] ?? 0, "", false);
  }
  say("chosen", `${meta.names[feature]}: private value, unit ${unitOf(meta, feature)}, error ± ${brief(meta.noise_sd[feature])}`);
  drawTrace(at("large"), chunks, feature, meta.noise_sd[feature] ?? 0, unitOf(meta, feature), true);
  const field = fieldOf(meta);
  at("fieldbox").hidden = field === null;
  if (field === null) return;
  const place = drawField(at("field"), chunks, field, field.map((column) => meta.noise_sd[column] ?? 0));
  say("fieldnote", place === null ? "no gaze yet" : `${brief(place[0])}° right, ${brief(place[1])}° up. The shade is the error to expect`);
}

function chosen() {
  return streams.get(at("stream").value);
}

function show() {
  const one = chosen();
  if (one === undefined) return;
  showState(one);
  showFeatures(one);
}

function list() {
  const before = at("stream").value;
  at("stream").replaceChildren(...[...streams.keys()].sort().map((id) => new Option(id, id)));
  if (streams.has(before)) at("stream").value = before;
}

function take(frame) {
  if (frame.kind === "sidecar") {
    sidecars.set(frame.id, frame.status);
  } else {
    const known = streams.has(frame.id), one = streamOf(frame.id);
    if (!known) list();
    if (frame.kind === "stream") Object.assign(one, { meta: frame, chunks: [] });
    if (frame.kind === "state") one.state = frame;
    if (frame.kind === "chunk") one.chunks = [...one.chunks, frame].slice(-KEPT_CHUNKS);
    if (one !== chosen()) return;
    if (frame.kind === "stream") buildFeatures(one);
    if (frame.kind !== "state") showFeatures(one);
  }
  const one = chosen();
  if (one !== undefined) showState(one);
}

at("stream").addEventListener("change", () => {
  const one = chosen();
  if (one?.meta) buildFeatures(one);
  show();
});
at("features").addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (button === null) return;
  feature = Number(button.dataset.feature);
  show();
});
at("features").addEventListener("keydown", (event) => {
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  if (step === undefined) return;
  event.preventDefault();
  const shown = [...at("features").children].filter((button) => !button.hidden);
  shown[(shown.indexOf(document.activeElement) + step + shown.length) % shown.length].focus();
});
at("search").addEventListener("input", () => {
  const wanted = at("search").value.toLowerCase();
  for (const button of at("features").children) button.hidden = !button.title.toLowerCase().includes(wanted);
});

new ResizeObserver(() => chosen() && showFeatures(chosen())).observe(at("large"));
const source = new EventSource("events");
source.addEventListener("open", () => {
  streams.clear();
  say("page", "live");
});
source.addEventListener("error", () => say("page", "the monitor is away; trying again", true));
source.addEventListener("message", (event) => take(JSON.parse(event.data)));
setInterval(() => chosen() && showState(chosen()), 1000);

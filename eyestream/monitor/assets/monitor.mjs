// The page: takes frames as they come and shows the stream that is chosen.

import { brief, drawField, drawTrace, fieldOf } from "./traces.mjs";

const KEPT_CHUNKS = 20;
const at = (id) => document.getElementById(id);
const streams = new Map();
let feature = 0;
let away = false;

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
  if (state !== null) {
    const [words, bad] = away ? ["the monitor is away: what is shown is old", true] : state.headline;
    const [word, reason] = state.connected ? state.status ?? ["", ""] : ["", ""];
    say("state", words, bad);
    const ledger = reason === "ledger" ? "ledger: fails" : word === "online" || word === "exhausted" ? "ledger: works" : "ledger: not known";
    say("links", `broker: ${state.connected ? "connected" : "away"}. ${ledger}`, !state.connected);
    showBudget(one, state.left);
    const refused = Object.entries(state.refusals);
    const count = refused.reduce((sum, [, number]) => sum + number, 0);
    say("refused", count ? `${count} could not be read` : "all could be read", count > 0);
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
  const oldest = latest.oldest_gaze_s ?? latest.age_s;
  say("age", `${duration(latest.latency_s + passed)} to ${duration(oldest + passed)} old`);
  const of = latest.oldest_gaze_s === null ? "rows" : "gaze";
  say("latency", `newest and oldest ${of} of chunk ${latest.index}. It came ${(1000 * latest.latency_s).toFixed(1)} ms later than the fastest`);
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

/** What a value is, as the guarantee of its stream says. */
function kindOf(meta) {
  if (/^asked features: /m.test(meta.guarantee)) return "change since the first minute";
  return /^baseline: /m.test(meta.guarantee) ? "change since the first minute, plus a public mean" : "private value";
}

/** Buttons, one for each feature. */
function buildFeatures(one) {
  const made = (one.meta?.names ?? []).map((name, i) => {
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
  feature = Math.max(0, Math.min(feature, made.length - 1));
  say("guarantee", one.meta?.guarantee ?? "");
}

function showFeatures(one) {
  if (one.meta === null) {
    say("chosen", "Features");
    at("large").replaceChildren();
    at("fieldbox").hidden = true;
    return;
  }
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
  say("chosen", `${meta.names[feature]}: ${kindOf(meta)}, unit ${unitOf(meta, feature)}, error ± ${brief(meta.noise_sd[feature])}`);
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
  const known = streams.has(frame.id), it = streamOf(frame.id);
  if (!known) list();
  if (frame.kind === "stream") Object.assign(it, { meta: frame, chunks: [] });
  if (frame.kind === "state") it.state = frame;
  if (frame.kind === "chunk") it.chunks = [...it.chunks, frame].slice(-KEPT_CHUNKS);
  if (it === chosen()) {
    if (frame.kind === "stream") buildFeatures(it);
    if (frame.kind !== "state") showFeatures(it);
  }
  const one = chosen();
  if (one !== undefined) showState(one);
}

at("stream").addEventListener("change", () => {
  const one = chosen();
  if (one !== undefined) buildFeatures(one);
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
  away = false;
  say("page", "live");
});
source.addEventListener("error", () => {
  away = true;
  say("page", "the monitor is away; trying again", true);
  show();
});
source.addEventListener("message", (event) => take(JSON.parse(event.data)));
setInterval(() => chosen() && showState(chosen()), 1000);

// Reads every golden payload: node check.mjs ../../tests/golden. What is good must be read, what is bad refused.

import { readFileSync } from "node:fs";
import { join } from "node:path";

import { decode, Refused } from "./decode.mjs";

const folder = process.argv[2];
const index = JSON.parse(readFileSync(join(folder, "index.json"), "utf8"));
const DIGITS = ["session", "seq", "chunk"];

/** As the index has it: rows of values, null for a missing one, numbers of 64 bits as text. */
function plain(key, value, shape) {
  if (DIGITS.includes(key)) return String(value);
  if (typeof value === "bigint") return Number(value);
  if (Array.isArray(value)) return value.map((one) => plain("", one));
  if (key === "values") {
    const [rows, columns] = shape.map(Number);
    const finite = Array.from(value, (one) => (Number.isFinite(one) ? one : null));
    return Array.from({ length: rows }, (_, i) => finite.slice(i * columns, (i + 1) * columns));
  }
  return ArrayBuffer.isView(value) ? Array.from(value) : value;
}

/** The same text for the same message, whatever the order of its keys. */
const text = (message) => JSON.stringify(Object.entries(message).sort(([a], [b]) => (a < b ? -1 : 1)));
const single = (value) => (value === null ? null : Math.fround(value));

function fault(entry, payload) {
  let message;
  try {
    if (entry.kind === "raw") message = decode("raw", payload, index.schema, [index.features]);
    else if (entry.kind === "gaze") message = decode("gaze", payload, index.schema, [2, 3]);
    else message = decode(entry.kind, payload);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return error.message === entry.refused ? null : `refused as ${error.message}`;
  }
  if (!("holds" in entry)) return "not refused";
  const shown = { v: 1 };
  for (const [key, value] of Object.entries(message)) shown[key] = plain(key, value, message.shape);
  const holds = { ...entry.holds };
  if ("values" in holds) holds.values = holds.values.map((row) => row.map(single));
  return text(shown) === text(holds) ? null : "read as something else";
}

let faults = 0;
const payloads = Object.entries(index.payloads);
for (const [name, entry] of payloads) {
  const said = fault(entry, readFileSync(join(folder, name)));
  if (said !== null) {
    console.log(`${name}: ${said}`);
    faults++;
  }
}
console.log(`${payloads.length} payloads, ${faults} faults`);
process.exitCode = faults > 0 || payloads.length === 0 ? 1 : 0;

// Payloads of eyestream's wire, version 1, without a library: docs/protocol.md has the tables. For Node and browsers.
// Integers become BigInt, because session takes 64 bits. Numbers in bytes become Float32Array or Float64Array.

const RAW_BYTES = 65536, PRIVATE_BYTES = 4194304;
const MAX_ROWS = 4096n, MAX_U64 = 2n ** 64n - 1n, MAX_WEARER = 2n ** 32n - 1n, MOST_NESTED = 100;

// Key -> type; a question mark: it may be missing. The key v stands before them all.
const KEYS = {
  raw: { schema: "int", session: "int", seq: "int", shape: "ints", values: "bytes", end: "bool?", t: "bytes?",
    wearer: "int?" },
  gaze: { schema: "int", shape: "ints", values: "bytes", t: "bytes" },
  private: { session: "int", chunk: "int", t0: "float", dt: "float", shape: "ints", values: "bytes",
    epsilon: "float", delta: "float", at: "float?" },
  meta: { names: "texts", units: "texts", rate_hz: "float", n: "int", mechanism: "text", k: "ints", epsilon: "float",
    delta: "float", noise_sd: "bytes", guarantee: "text", calibration: "text" },
  status: { state: "text", reason: "text" },
  budget: { chunks: "int", ceiling: "text", resumes_at: "int?" },
  odometer: { ledger: "text", life: "int", began: "int", reads: "int", former: "text?" },
  owner: { ledger: "text", devices: "texts" },
};
const CLOSED = ["raw", "gaze", "owner"]; // a sidecar refuses keys that it does not know; in the others, ignore them

const TYPES = {
  int: (x) => typeof x === "bigint",
  float: (x) => typeof x === "number" || typeof x === "bigint",
  text: (x) => typeof x === "string",
  bytes: (x) => x instanceof Uint8Array,
  bool: (x) => typeof x === "boolean",
  ints: (x) => Array.isArray(x) && x.every(TYPES.int),
  texts: (x) => Array.isArray(x) && x.every(TYPES.text),
};

/** A payload that is none; its message is one of the words in docs/protocol.md. */
export class Refused extends Error {}

function need(holds, otherwise) {
  if (!holds) throw new Refused(otherwise);
}

/** Reads msgpack, value after value. */
class Reader {
  constructor(payload) {
    this.bytes = payload;
    this.view = new DataView(payload.buffer, payload.byteOffset, payload.byteLength);
    this.at = 0;
  }

  skip(size) {
    need(this.at + size <= this.bytes.length, "not_msgpack");
    this.at += size;
    return this.at - size;
  }

  byte() { return this.view.getUint8(this.skip(1)); }

  integer(width, signed) {
    const at = this.skip(width), bits = 8 * width;
    if (width === 8) return signed ? this.view.getBigInt64(at) : this.view.getBigUint64(at);
    return BigInt(this.view[`get${signed ? "Int" : "Uint"}${bits}`](at));
  }

  size(width) { return Number(this.integer(width, false)); }

  data(size) { const at = this.skip(size); return this.bytes.slice(at, at + size); } // a copy: aligned, and ours

  text(size) {
    try { return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(this.data(size)); } catch (error) {
      throw error instanceof TypeError ? new Refused("not_msgpack") : error;
    }
  }

  list(count, depth) {
    const found = [];
    for (let i = 0; i < count; i++) found.push(this.value(depth + 1));
    return found;
  }

  value(depth = 0) {
    need(depth < MOST_NESTED, "nesting");
    const code = this.byte();
    if (code < 0x80) return BigInt(code);
    if (code >= 0xe0) return BigInt(code - 256);
    if (code < 0x90) return { map: this.list(2 * (code & 15), depth) }; // no message has a map in a map
    if (code < 0xa0) return this.list(code & 15, depth);
    if (code < 0xc0) return this.text(code & 31);
    if (code === 0xc0) return null;
    need(code !== 0xc1, "not_msgpack");
    if (code < 0xc4) return code === 0xc3;
    if (code < 0xc7) return this.data(this.size(1 << (code - 0xc4)));
    if (code < 0xca) return { extension: this.data(this.size(1 << (code - 0xc7)) + 1) };
    if (code === 0xca) return this.view.getFloat32(this.skip(4));
    if (code === 0xcb) return this.view.getFloat64(this.skip(8));
    if (code < 0xd0) return this.integer(1 << (code - 0xcc), false);
    if (code < 0xd4) return this.integer(1 << (code - 0xd0), true);
    if (code < 0xd9) return { extension: this.data((1 << (code - 0xd4)) + 1) };
    if (code < 0xdc) return this.text(this.size(1 << (code - 0xd9)));
    if (code < 0xde) return this.list(this.size(2 << (code - 0xdc)), depth);
    return { map: this.list(2 * this.size(2 << (code - 0xde)), depth) };
  }
}

/** The entries of the one map in `payload`, without v. */
function entries(payload) {
  need(payload.length > 0 && payload[0] !== 0xc1, "not_msgpack");
  const reader = new Reader(payload), code = reader.byte();
  need((code & 0xf0) === 0x80 || code === 0xde || code === 0xdf, "not_a_map");
  const count = code < 0x90 ? code & 15 : reader.size(2 << (code - 0xde));
  need(count > 0, "missing_key");
  const found = new Map();
  for (let i = 0; i < count; i++) {
    const key = reader.value(), value = reader.value();
    need(i > 0 || (key === "v" && value === 1n), "version");
    need(typeof key === "string", "type");
    need(!found.has(key), "duplicate_key");
    found.set(key, value);
  }
  need(reader.at === payload.length, "not_msgpack");
  found.delete("v");
  return found;
}

/** Little-endian numbers, on every machine. */
function numbers(data, width) {
  need(data.length % width === 0, "length");
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const found = new (width === 4 ? Float32Array : Float64Array)(data.length / width);
  return found.map((_, i) => (width === 4 ? view.getFloat32(4 * i, true) : view.getFloat64(8 * i, true)));
}

/**
 * What a payload says, as an object. `values`, `t` and `noise_sd` are flat arrays of numbers.
 * A sidecar also compares `schema` and the number of `columns` with its configuration.
 */
export function decode(kind, payload, schema = null, columns = null) {
  need(payload.length <= (["private", "meta", "owner"].includes(kind) ? PRIVATE_BYTES : RAW_BYTES), "oversize");
  const found = entries(payload), keys = KEYS[kind];
  for (const [key, type] of Object.entries(keys)) need(found.has(key) || type.endsWith("?"), "missing_key");
  for (const key of found.keys()) need(Object.hasOwn(keys, key) || !CLOSED.includes(kind), "unknown_key");
  const known = [...found].filter(([key]) => Object.hasOwn(keys, key));
  for (const [key, value] of known) need(TYPES[keys[key].replace("?", "")](value), "type");
  const message = Object.fromEntries(known.map(([key, x]) => [key, keys[key].startsWith("float") ? Number(x) : x]));
  need(schema === null || message.schema === BigInt(schema), "schema");
  if ("shape" in message) arrays(message, columns);
  if (kind === "meta") {
    message.noise_sd = numbers(message.noise_sd, 4);
    need(message.units.length === message.names.length && message.noise_sd.length === message.names.length, "length");
  }
  limits(kind, message);
  return message;
}

function arrays(message, columns) {
  const shape = message.shape;
  need(shape.length === 2 && shape[0] >= 0n && shape[1] > 0n, "shape");
  need(columns === null || (columns.includes(Number(shape[1])) && shape[0] <= MAX_ROWS), "shape");
  for (const [key, width, count] of [["values", 4, shape[0] * shape[1]], ["t", 8, shape[0]]]) {
    if (!(key in message)) continue;
    message[key] = numbers(message[key], width);
    need(BigInt(message[key].length) === count, "length");
  }
}

function limits(kind, message) {
  for (const [key, value] of Object.entries(message)) {
    need(typeof value !== "bigint" || value >= 0n, "range");
    need(typeof value !== "number" || (Number.isFinite(value) && (value >= 0 || key === "at")), "range");
  }
  const rows = kind === "raw" ? message.shape[0] : 0n;
  need((message.seq ?? 0n) <= MAX_U64 - rows && (message.wearer ?? 0n) <= MAX_WEARER, "range");
  need(kind !== "raw" || (message.t ?? []).every(Number.isFinite), "range");
  need((message.dt ?? 1) > 0 && (message.rate_hz ?? 1) > 0 && (message.delta ?? 0) <= 1, "range");
}

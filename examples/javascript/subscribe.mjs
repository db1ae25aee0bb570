// A subscriber of eyestream over MQTT 3.1.1, as small as it can be, without a library. It has no socket: bytes come in
// by `feed`, and go out by `write`. An application of your own may take MQTT.js in its place, decode.mjs is the same.

import { decode } from "./decode.mjs";

const CONNECT = 0x10, CONNACK = 2, PUBLISH = 3, PUBACK = 0x40, SUBSCRIBE = 0x82, SUBACK = 9, PINGREQ = 0xc0;
const LEAVES = ["meta", "status", "budget", "odometer", "private"];
const MOST_BYTES = 4194304 + 1024; // of a packet: the largest payload and its topic

export const KEEP_ALIVE_S = 30;

const u16 = (number) => [number >> 8, number & 255];
const text = (words) => {
  const bytes = new TextEncoder().encode(words);
  return [...u16(bytes.length), ...bytes];
};

function packet(head, body) {
  const length = [];
  for (let rest = body.length; rest > 0 || length.length === 0; rest = Math.floor(rest / 128)) {
    length.push(rest < 128 ? rest : (rest % 128) | 128);
  }
  return Uint8Array.from([head, ...length, ...body]);
}

export class Subscriber {
  /**
   * @param {object} options
   * @param {string} options.device its pseudonym
   * @param {string} [options.stream] name of the stream
   * @param {string} [options.username]
   * @param {string} [options.password]
   * @param {(bytes: Uint8Array) => void} options.write to the broker
   * @param {(leaf: string, message: object, meta: object?) => void} options.deliver what came, each chunk once;
   *   first "subscribed" alone: a sidecar's "meta" follows at once, or no sidecar serves the device; of "odometer"
   *   `wentBack` says whether the sidecar goes on with an older copy of its ledger
   */
  constructor({ device, stream = "features", username, password, write, deliver }) {
    Object.assign(this, { username, password, write, deliver });
    this.topics = LEAVES.map((leaf) => `eyestream/v1/${device}/${stream}/${leaf}`);
    this.held = new Uint8Array(0);
    this.meta = null;
    this.last = null;
    this.lives = [];
  }

  /** The first packet, once the connection stands. */
  open() {
    const login = this.username ? [...text(this.username), ...text(this.password ?? "")] : [];
    const flags = this.username ? 0xc2 : 2; // a login, a clean session
    const id = `reader-${Math.random().toString(36).slice(2, 10)}`;
    this.write(packet(CONNECT, [...text("MQTT"), 4, flags, ...u16(KEEP_ALIVE_S), ...text(id), ...login]));
  }

  /** To be called every KEEP_ALIVE_S / 2. */
  ping() {
    this.write(Uint8Array.of(PINGREQ, 0));
  }

  /** Bytes from the broker, in whatever pieces. Throws where the broker refuses, and for what is no message of ours. */
  feed(bytes) {
    const held = new Uint8Array(this.held.length + bytes.length);
    held.set(this.held);
    held.set(bytes, this.held.length);
    let at = 0;
    for (;;) {
      let size = 0, head = at + 1, more = true;
      for (let shift = 0; more && head < held.length; shift += 7) {
        more = (held[head] & 128) !== 0;
        size += (held[head++] & 127) * 2 ** shift;
      }
      if (size > MOST_BYTES || head - at > 5) throw new Error("the broker sends a packet that is too large");
      if (more || held.length < head + size) break;
      this.take(held[at], held.subarray(head, head + size));
      at = head + size;
    }
    this.held = held.slice(at);
  }

  take(head, body) {
    const kind = head >> 4;
    if (kind === CONNACK) {
      if (body[1] !== 0) throw new Error(`the broker refuses the connection: code ${body[1]}`);
      this.write(packet(SUBSCRIBE, [0, 1, ...LEAVES.flatMap((leaf, i) => [...text(this.topics[i]), Number(leaf !== "odometer")])]));
    } else if (kind === SUBACK) {
      const refused = this.topics.filter((_, i) => body[2 + i] === 128 && LEAVES[i] !== "odometer"); // rights of before
      if (refused.length > 0) throw new Error(`the broker does not let us read ${refused.join(", ")}`);
      this.deliver("subscribed", {}, null);
    } else if (kind === PUBLISH) {
      const qos = (head >> 1) & 3, end = 2 + body[0] * 256 + body[1];
      const topic = new TextDecoder().decode(body.subarray(2, end));
      if (qos === 1) this.write(packet(PUBACK, [body[end], body[end + 1]]));
      this.read(topic.slice(topic.lastIndexOf("/") + 1), body.subarray(end + (qos > 0 ? 2 : 0)), (head & 1) === 1);
    }
  }

  read(leaf, payload, retained) {
    const message = decode(leaf, payload);
    if (leaf === "odometer") message.wentBack = this.wentBack(message, retained);
    if (leaf === "meta") this.meta = message;
    if (leaf === "private") {
      const name = `${message.session} ${message.chunk}`; // the same chunk may come twice, and before meta
      if (name === this.last || this.meta === null) return;
      this.last = name;
    }
    this.deliver(leaf, message, this.meta);
  }

  wentBack(said, retained) {
    const known = this.lives.find((one) => one.ledger === said.ledger && one.life === said.life);
    if (known && said.reads <= known.reads) return false; // it came late, or again
    const others = this.lives.filter((one) => one.ledger === said.ledger && one !== known);
    const overlaps = others.some((one) => one.began < said.reads && said.began < one.reads);
    const below = !known && others.some((one) => said.began < one.reads);
    const grows = !retained && this.unsure?.ledger === said.ledger && this.unsure.life === said.life && said.reads > this.unsure.reads;
    if (below && !overlaps && !grows) { // perhaps: the broker may have sent an old message; what is old does not grow
      this.unsure = said;
      return false;
    }
    this.lives = [...this.lives.filter((one) => one !== known), said];
    return overlaps || below;
  }
}

/** The values of a feature in a chunk. */
export function values(chunk, feature) {
  const n = Number(chunk.shape[1]); // integers are BigInt
  return chunk.values.subarray(feature * n, (feature + 1) * n);
}

/** The mean of a feature of a chunk, in words. */
export function line(chunk, meta, feature = 0) {
  const own = values(chunk, feature);
  const mean = own.reduce((sum, value) => sum + value, 0) / own.length;
  const name = `${meta.names[feature]} ${mean.toFixed(3)} ${meta.units[feature]}`;
  return `chunk ${chunk.chunk} epsilon ${chunk.epsilon}: ${name}`;
}

/** Connect over a WebSocket, in a browser or in Node; `ended` hears why it is over. */
export function overWebSocket(url, options, ended) {
  const socket = new WebSocket(url, "mqtt");
  socket.binaryType = "arraybuffer";
  const subscriber = new Subscriber({ ...options, write: (bytes) => socket.send(bytes) });
  const timer = setInterval(() => socket.readyState === 1 && subscriber.ping(), KEEP_ALIVE_S * 500);
  let reason = "the link is lost";
  socket.onopen = () => subscriber.open();
  socket.onmessage = (event) => {
    try {
      subscriber.feed(new Uint8Array(event.data));
    } catch (error) {
      reason = error.message;
      socket.close();
    }
  };
  socket.onclose = () => {
    clearInterval(timer);
    ended(reason);
  };
  return socket;
}

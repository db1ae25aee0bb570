// Prints private chunks of a device, without a library:
//
//     node listen.mjs mqtt://localhost:1883 hmd-1 [CHUNKS]
//
// mqtts://, ws:// and wss:// work too (for the last two Node 22, or Node 20 with --experimental-websocket). The login
// comes from MQTT_USERNAME and MQTT_PASSWORD. For a certificate authority of your own set NODE_EXTRA_CA_CERTS.

import { connect as connectTcp } from "node:net";
import { connect as connectTls } from "node:tls";

import { KEEP_ALIVE_S, line, overWebSocket, Subscriber } from "./subscribe.mjs";

const [url, device, most] = process.argv.slice(2);
if (!URL.canParse(url) || !device) {
  console.error("usage: node listen.mjs mqtt://localhost:1883 DEVICE [CHUNKS]");
  process.exit(2);
}
const address = new URL(url);
let count = 0;
let close = () => {};

function deliver(leaf, message, meta) {
  if (leaf === "subscribed") console.error(`waiting for ${device}`);
  if (leaf === "status") console.log(`status ${message.state} ${message.reason}`);
  if (message.wentBack) console.log("the ledger went back: what was spent since is spent again");
  if (leaf !== "private") return;
  console.log(line(message, meta));
  if (++count === Number(most)) close();
}

function ended(reason) {
  if (count === Number(most)) return;
  console.error(reason);
  process.exitCode = 1;
}

/** Connect over TCP, with TLS for mqtts. */
function overTcp(options) {
  const secure = address.protocol === "mqtts:";
  const place = { host: address.hostname, port: Number(address.port || (secure ? 8883 : 1883)) };
  const socket = secure ? connectTls({ ...place, servername: place.host }) : connectTcp(place);
  const subscriber = new Subscriber({ ...options, write: (bytes) => socket.write(bytes) });
  const timer = setInterval(() => subscriber.ping(), KEEP_ALIVE_S * 500);
  let reason = "the link is lost";
  socket.on(secure ? "secureConnect" : "connect", () => subscriber.open());
  socket.on("data", (bytes) => {
    try {
      subscriber.feed(bytes);
    } catch (error) {
      reason = error.message;
      socket.destroy();
    }
  });
  socket.on("error", (error) => { reason = error.message; });
  socket.on("close", () => {
    clearInterval(timer);
    ended(reason);
  });
  return () => socket.destroy();
}

// Apart from what reads the bytes: an error of `deliver` ends the program where it is, with its line.
const options = { device, deliver: (...words) => queueMicrotask(() => deliver(...words)) };
Object.assign(options, { username: process.env.MQTT_USERNAME, password: process.env.MQTT_PASSWORD });
if (address.protocol.startsWith("ws")) {
  const socket = overWebSocket(url, options, ended);
  close = () => socket.close();
} else {
  close = overTcp(options);
}

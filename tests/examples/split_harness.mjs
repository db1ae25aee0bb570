// Feeds the same bytes of a broker to the subscriber in pieces of many sizes. Prints what it delivers and writes for each.
// Words: subscribe.mjs, the golden payloads.

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [script, golden] = process.argv.slice(2);
const { Subscriber } = await import(pathToFileURL(script));

/** A PUBLISH with QoS 1. */
function publish(leaf, id) {
  const topic = new TextEncoder().encode(`eyestream/v1/hmd-1/features/${leaf}`);
  const body = [0, topic.length, ...topic, 0, id, ...readFileSync(`${golden}/${leaf}.msgpack`)];
  const length = body.length < 128 ? [body.length] : [(body.length % 128) | 128, body.length >> 7];
  return [0x32, ...length, ...body];
}

const leaves = ["private", "meta", "status", "private", "private", "budget"]; // one before meta, and one twice
const stream = Uint8Array.from([0x20, 2, 0, 0, 0x90, 6, 0, 1, 1, 1, 1, 1, 0xd0, 0, ...leaves.flatMap(publish)]);
for (let size = 1; size <= stream.length; size++) {
  const delivered = [], written = [];
  const subscriber = new Subscriber({
    device: "hmd-1",
    write: (bytes) => written.push(...bytes),
    deliver: (leaf, message) => delivered.push(leaf, message.session ?? ""),
  });
  for (let at = 0; at < stream.length; at += size) subscriber.feed(stream.slice(at, at + size));
  console.log(delivered.join(" "), Buffer.from(written).toString("hex"));
}
for (const bad of [[0x20, 2, 0, 5], [0x90, 6, 0, 1, 1, 128, 1, 1], [0x30, 255, 255, 255, 127], [0x30, 128, 128, 128, 128, 128]]) {
  const subscriber = new Subscriber({ device: "hmd-1", write() {}, deliver() {} });
  try {
    subscriber.feed(Uint8Array.from(bad));
    console.log("taken");
  } catch (error) {
    console.log(error.message);
  }
}

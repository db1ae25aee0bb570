// A tracker or an application in another language, on mqtt.js: node foreign.js tracker|application URL VERSION TOPIC
// A tracker publishes each line of hexadecimal digits that it reads at QoS 1 and says "sent"; an application says what
// arrives, in hexadecimal digits, and "ready" first.
const mqtt = require("mqtt");
const readline = require("readline");

const [role, url, version, topic] = process.argv.slice(2);
const client = mqtt.connect(url, { protocolVersion: Number(version), reconnectPeriod: 0 });

client.on("error", (error) => {
  console.error(error.message);
  process.exit(1);
});

client.on("connect", () => {
  if (role === "application") {
    client.on("message", (_, payload) => console.log(payload.toString("hex")));
    client.subscribe(topic, { qos: 1 }, () => console.log("ready"));
    return;
  }
  const lines = readline.createInterface({ input: process.stdin });
  console.log("ready");
  lines.on("line", (line) => client.publish(topic, Buffer.from(line, "hex"), { qos: 1 }, () => console.log("sent")));
  lines.on("close", () => client.end());
});

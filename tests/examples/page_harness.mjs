// Runs page.mjs without a browser: a document of the few elements that it uses. Prints what the page would show.
// Words: page.mjs, the broker's address, the device.

import { pathToFileURL } from "node:url";

const [script, url, device] = process.argv.slice(2);

class Element {
  constructor(id, value = "") {
    Object.assign(this, { id, value, listeners: {}, children: [], drawn: 0, width: 1600, height: 400 });
  }

  set textContent(words) { console.log(`${this.id}: ${words}`); }

  addEventListener(name, heard) { this.listeners[name] = heard; }

  replaceChildren(...options) {
    this.children = options;
    this.value = options[0].value;
    console.log(`${this.id}: ${options.length} options, ${options[0].text}`);
  }

  getContext() {
    const finite = (x, y) => { if (!Number.isFinite(x) || !Number.isFinite(y)) throw new Error("a point that is none"); };
    globalThis.Path2D = class { lineTo(x, y) { finite(x, y); } };
    return { clearRect: finite, fill() {}, stroke: () => console.log(`${this.id}: drawn`) };
  }
}

const ids = ["form", "username", "password", "feature", "status", "trace", "last", "budget"];
const parts = Object.fromEntries(ids.map((id) => [id, new Element(id)]));
Object.assign(parts, { url: new Element("url", url), device: new Element("device", device) });
globalThis.document = { getElementById: (id) => parts[id] };
globalThis.getComputedStyle = () => ({ color: "black" });
globalThis.Option = class { constructor(text, value) { Object.assign(this, { text, value }); } };

await import(pathToFileURL(script));
parts.form.listeners.submit({ preventDefault() {} });

// Perfetto's trace processor (wasm) under node: node trace_processor.mjs ENGINE_FOLDER TRACE SQL...
// Prints one JSON document: for each query {columns, rows} or {error}.
//
// ENGINE_FOLDER holds engine_bundle.js and trace_processor.wasm as Perfetto's UI ships them. The bundle expects
// to be a web worker; what it needs of one stands below. Messages are TraceProcessorRpcStream of
// protos/perfetto/trace_processor/trace_processor.proto.
import { readFileSync, openSync, readSync, closeSync } from "node:fs";
import { join } from "node:path";
import vm from "node:vm";
import { webcrypto } from "node:crypto";

const [folder, traceFile, ...queries] = process.argv.slice(2);

// --- protobuf, as much as is needed ---
function varint(value) {
  const out = [];
  let rest = BigInt(value);
  while (rest >= 0x80n) {
    out.push(Number(rest & 0x7fn) | 0x80);
    rest >>= 7n;
  }
  out.push(Number(rest));
  return out;
}
function field(number, data) {
  const head = [...varint((number << 3) | 2), ...varint(data.length)];
  const out = new Uint8Array(head.length + data.length);
  out.set(head);
  out.set(data, head.length);
  return out;
}
function numberField(number, value) {
  return Uint8Array.from([...varint(number << 3), ...varint(value)]);
}
function join_(...parts) {
  const out = new Uint8Array(parts.reduce((n, p) => n + p.length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}
class Reader {
  constructor(data) {
    this.data = data;
    this.at = 0;
  }
  get more() {
    return this.at < this.data.length;
  }
  varint() {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = this.data[this.at++];
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  }
  field() {
    const key = Number(this.varint());
    const kind = key & 7;
    if (kind === 0) return [key >> 3, this.varint()];
    if (kind === 1) {
      this.at += 8;
      return [key >> 3, this.data.subarray(this.at - 8, this.at)];
    }
    if (kind === 5) {
      this.at += 4;
      return [key >> 3, this.data.subarray(this.at - 4, this.at)];
    }
    const length = Number(this.varint());
    this.at += length;
    return [key >> 3, this.data.subarray(this.at - length, this.at)];
  }
}

// --- the worker that the bundle expects ---
const replies = [];
const port = { onmessage: null, postMessage: (data) => replies.push(...messages(data)) };
let buffered = new Uint8Array(0);
function messages(data) {
  buffered = join_(buffered, data);
  const found = [];
  for (;;) {
    const reader = new Reader(buffered);
    if (!reader.more) return found;
    let got;
    try {
      got = reader.field();
    } catch {
      return found;
    }
    if (reader.at > buffered.length) return found;
    found.push(got[1]);
    buffered = buffered.slice(reader.at);
  }
}
const quiet = { log() {}, warn() {}, error: (...a) => console.error(...a), info() {}, debug() {} };
const sandbox = {
  WebAssembly, URL, TextDecoder, TextEncoder, performance, setTimeout, clearTimeout, queueMicrotask,
  crypto: webcrypto, console: quiet, importScripts() {}, WorkerGlobalScope: class {},
  location: { href: "http://localhost/engine_bundle.js" }, navigator: { hardwareConcurrency: 1 },
  XMLHttpRequest: class {
    open(method, name) {
      this.name = String(name).split("/").pop();
    }
    send() {
      const bytes = readFileSync(join(folder, this.name));
      this.response = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
    }
  },
};
sandbox.self = sandbox;
sandbox.globalThis = sandbox;
vm.createContext(sandbox);
// typed arrays of this realm, so that the bundle's instanceof tests hold
Object.assign(sandbox, { Uint8Array, Int8Array, Uint16Array, Int16Array, Uint32Array, Int32Array, Float32Array,
  Float64Array, BigInt64Array, BigUint64Array, ArrayBuffer, DataView, Promise, Error, TypeError, RangeError });
vm.runInContext(readFileSync(join(folder, "engine_bundle.js"), "utf8"), sandbox);
sandbox.onmessage({ data: port });

let sequence = 0;
function call(...parts) {
  const rpc = join_(numberField(1, sequence++), ...parts);
  port.onmessage({ data: field(1, rpc) });
}
function rows(batches) {
  let columns = [];
  const out = [];
  let error = null;
  let row = [];
  for (const message of batches) {
    const rpc = new Reader(message);
    while (rpc.more) {
      const [number, body] = rpc.field();
      if (number === 5) error = new TextDecoder().decode(body);
      if (number !== 203) continue;
      const result = new Reader(body);
      while (result.more) {
        const [key, value] = result.field();
        if (key === 1) columns.push(new TextDecoder().decode(value));
        else if (key === 2) error = new TextDecoder().decode(value);
        else if (key === 3) {
          const batch = { cells: [], ints: null, doubles: null, strings: [] };
          const cells = new Reader(value);
          while (cells.more) {
            const [what, data] = cells.field();
            if (what === 1) for (const r = new Reader(data); r.more; ) batch.cells.push(Number(r.varint()));
            else if (what === 2) batch.ints = new Reader(data);
            else if (what === 3) batch.doubles = new DataView(data.buffer, data.byteOffset, data.length);
            else if (what === 5) batch.strings = new TextDecoder().decode(data).split("\0");
          }
          let doubles = 0;
          let strings = 0;
          for (const cell of batch.cells) {
            if (cell === 2) row.push(String(BigInt.asIntN(64, batch.ints.varint())));
            else if (cell === 3) row.push(batch.doubles.getFloat64(8 * doubles++, true));
            else if (cell === 4) row.push(batch.strings[strings++]);
            else row.push(null);
            if (row.length === columns.length) {
              out.push(row);
              row = [];
            }
          }
        }
      }
    }
  }
  return error ? { error } : { columns, rows: out };
}

// the wasm is compiled while the bundle loads; what is left to do runs as a microtask and a timer
await new Promise((resolve) => setTimeout(resolve, 50));
const file = openSync(traceFile);
const chunk = Buffer.alloc(16 << 20);
for (let size; (size = readSync(file, chunk)) > 0; )
  call(numberField(2, 1), field(101, new Uint8Array(chunk.subarray(0, size))));
closeSync(file);
call(numberField(2, 2));
const answers = [];
for (const query of queries) {
  replies.length = 0;
  call(numberField(2, 3), field(103, field(1, new TextEncoder().encode(query))));
  answers.push(rows(replies));
}
process.stdout.write(JSON.stringify(answers) + "\n", () => process.exit(0));

// Asks Perfetto's trace processor about a trace: node query.mjs INTERFACE TRACE SQL...
//
// INTERFACE is the folder of one version of Perfetto's user interface. There the trace processor is a WebAssembly module, which
// engine_bundle.js runs in a web worker and talks to by messages. Here that script runs in this process, with the few things of
// a worker that it asks for. The messages are in protobuf's format: TraceProcessorRpc of trace_processor.proto.
//
// It prints one array of JSON: for each question its rows, each an array of its columns.

import fs from 'node:fs';
import path from 'node:path';

const [folder, trace, ...questions] = process.argv.slice(2);

// What the script throws where nobody waits for it is an error too.
process.on('uncaughtException', error => {
  console.error(String(error.stack ?? error).slice(0, 4000));
  process.exit(2);
});

// Protobuf's format, as far as it is needed.

const text = bytes => new TextDecoder().decode(bytes);

function varint(number) {
  const bytes = [];
  for (; number > 127; number = Math.floor(number / 128)) bytes.push(number % 128 | 128);
  return Buffer.from([...bytes, number]);
}

const number = (field, value) => Buffer.concat([varint(field << 3), varint(value)]);

const bytes = (field, value) => {
  value = Buffer.from(value);
  return Buffer.concat([varint(field << 3 | 2), varint(value.length), value]);
};

// Reads numbers one after the other, as signed ones of 64 bits.
function* varints(from) {
  let value = 0n, shift = 0n;
  for (const byte of from) {
    value |= BigInt(byte & 127) << shift;
    shift += 7n;
    if (byte < 128) {
      yield BigInt.asIntN(64, value);
      value = shift = 0n;
    }
  }
}

// The fields of a message, each as its number and a number or bytes.
function* fields(message) {
  message = Buffer.from(message);
  let at = 0;
  const next = () => {
    const begin = at;
    while (message[at++] > 127);
    return Number(varints(message.subarray(begin, at)).next().value);
  };
  while (at < message.length) {
    const key = next(), field = key >>> 3;
    switch (key & 7) {
      case 0: yield [field, next()]; break;
      case 1: yield [field, message.subarray(at, at += 8)]; break;
      case 2: { const length = next(); yield [field, message.subarray(at, at += length)]; break; }
      case 5: yield [field, message.subarray(at, at += 4)]; break;
      default: throw new Error(`field ${field} has the unknown wire type ${key & 7}`);
    }
  }
}

const all = (message, field) => [...fields(message)].filter(([at]) => at === field).map(([, value]) => value);

// The worker. Files beside the script are read from the folder, and what the module says goes to stderr.

class Request {
  open(_method, url) { this.file = path.join(folder, path.basename(url)); }
  send() {
    const read = fs.readFileSync(this.file);
    this.status = 200;
    this.response = read.buffer.slice(read.byteOffset, read.byteOffset + read.length);
  }
}

const worker = { location: { href: 'http://localhost/engine_bundle.js' } };
const said = { ...console, log: console.error, info: console.error, warn: console.error };
const globals = {
  self: worker, location: worker.location, XMLHttpRequest: Request, WorkerGlobalScope: function () {}, console: said,
  // The module is not to see that this is no browser.
  process: undefined, window: undefined, document: undefined,
};
const script = fs.readFileSync(path.join(folder, 'engine_bundle.js'), 'utf8');
new Function(...Object.keys(globals), script)(...Object.values(globals));

const replies = [];
const port = { postMessage: reply => replies.push(Buffer.from(reply)) };
worker.onmessage({ data: port });
// The module starts in steps that the script waits for.
await new Promise(resolve => setTimeout(resolve, 0));

// Methods, and the fields of their arguments and results.
const APPEND = { method: 1, argument: 101, result: 201, error: 2 };
const FINISH = { method: 2, result: 212, error: 1 };
const QUERY = { method: 3, argument: 103, result: 203, error: 2 };

let requests = 0;

// Calls a method: its results, of which a long one has several.
function call({ method, argument, result, error }, value) {
  const given = argument ? [bytes(argument, value)] : [];
  port.onmessage({ data: new Uint8Array(bytes(1, Buffer.concat([number(1, requests++), number(2, method), ...given]))) });
  const messages = all(Buffer.concat(replies.splice(0)), 1);
  const errors = messages.flatMap(message => all(message, 5));
  const results = messages.flatMap(message => all(message, result));
  errors.push(...results.flatMap(one => all(one, error)).filter(said => said.length > 0));
  if (errors.length > 0) throw new Error(errors.map(text).join('\n'));
  if (results.length === 0) throw new Error(`method ${method} has no result`);
  return results;
}

// The rows of an answer. A result has batches of cells: their kinds, and apart from that the values of each kind.
function rows(question) {
  const results = call(QUERY, bytes(1, question));
  const columns = results.flatMap(result => all(result, 1)).length;
  const cells = [];
  for (const batch of results.flatMap(result => all(result, 3))) {
    const kinds = all(batch, 1).flatMap(kinds => [...kinds]);
    const integers = all(batch, 2).flatMap(packed => [...varints(packed)]);
    const floats = all(batch, 3).flatMap(packed => {
      return Array.from({ length: packed.length / 8 }, (_, i) => packed.readDoubleLE(i * 8));
    });
    const strings = all(batch, 5).flatMap(joined => text(joined).split('\0'));
    for (const kind of kinds) {
      switch (kind) {
        case 1: cells.push(null); break;
        case 2: cells.push(Number(integers.shift())); break;
        case 3: cells.push(floats.shift()); break;
        case 4: cells.push(strings.shift()); break;
        default: throw new Error(`a cell of the unknown kind ${kind}`);
      }
    }
  }
  const found = [];
  while (cells.length > 0) found.push(cells.splice(0, columns));
  return found;
}

const read = fs.readFileSync(trace);
const PIECE = 1 << 23;
for (let at = 0; at < read.length; at += PIECE) call(APPEND, read.subarray(at, at + PIECE));
call(FINISH);
console.log(JSON.stringify(questions.map(rows)));

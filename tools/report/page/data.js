'use strict';
// The data of the page: columns are unpacked when they are first asked for, and kept.

const ARRAYS = {
  f32: Float32Array,
  f64: Float64Array,
  u8: Uint8Array,
  u16: Uint16Array,
  u32: Uint32Array
};

const data = JSON.parse(document.getElementById('data').textContent);
const rowCount = data.points.rows;
const columns = new Map(data.points.columns.map((column) => [column.name, column]));
const axes = data.points.columns.filter((column) => column.role === 'axis' && column.names.length > 1);
const metrics = data.points.columns.filter((column) => column.role === 'metric');
// Ends of intervals belong to their figure; a list of figures to choose from is shorter without them.
const chosenMetrics = metrics.filter((column) => !/_(low|high)(_|$)/.test(column.name));

const unpacked = new Map();

function bytesOf(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; ++i) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

async function unpack(number) {
  const holder = document.getElementById(`blob-${number}`);
  const packed = bytesOf(holder.textContent);
  holder.remove();
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate'));
  return new ARRAYS[data.types[number]](await new Response(stream).arrayBuffer());
}

function blob(number) {
  if (!unpacked.has(number)) unpacked.set(number, unpack(number));
  return unpacked.get(number);
}

// Values of a figure or a setting, codes of an axis or a text.
const values = (name) => blob(columns.get(name).blob);
// What an axis counts in, or null where it is over names.
const axisNumbers = (column) => (column.numbers === undefined ? null : blob(column.numbers));

// The value that stands for "none" among codes.
const noneOf = (codes) => 2 ** (8 * codes.BYTES_PER_ELEMENT) - 1;

const NOT_THERE = '(none)';
const nameOf = (column, code) => (code < column.names.length ? column.names[code] : NOT_THERE);

// Codes of an axis in the order a reader expects: by number where it is over numbers, else as written.
async function orderedCodes(column) {
  if (column.order) return column.order;
  const codes = column.names.map((_, code) => code);
  const numbers = await axisNumbers(column);
  if (numbers) {
    const of = await values(column.name);
    const first = new Map();
    for (let i = 0; i < rowCount && first.size < codes.length; ++i) {
      if (!first.has(of[i])) first.set(of[i], numbers[i]);
    }
    codes.sort((a, b) => first.get(a) - first.get(b));
  }
  column.order = codes;
  return codes;
}

// A row in a few words: its axes.
async function rowName(row) {
  const parts = [];
  for (const axis of axes) parts.push(`${axis.label}=${nameOf(axis, (await values(axis.name))[row])}`);
  return parts.join(', ') || `point ${(await values('index'))[row]}`;
}

function betterSign(metric) {
  return columns.get(metric)?.better === 'higher' ? 1 : -1;
}

function metricTitle(metric) {
  const column = columns.get(metric);
  return column.unit ? `${column.label} [${column.unit}]` : column.label;
}

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
// Figures to choose from: they differ between working points, and are no ends of intervals, which belong to their figure.
const chosenMetrics = metrics.filter((column) => column.least < column.most && !/_(low|high)(_|$)/.test(column.name));

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

// Numbers of a figure, or of an axis over numbers.
const numbersOf = (column) => (column.role === 'axis' ? axisNumbers(column) : values(column.name));

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

// How a link names a row: by the index of its point, and of several runs by the run's number. A page that is made again of
// more points has other rows, and the same names.
const pointKeys = {
  index: null,  // of each row, once read
  run: null,
  rows: null,

  async read() {
    this.index = await values('index');
    const run = columns.get('run');
    if (!run) return;
    const folders = data.points.runs.map(({folder}) => folder);
    const codes = await values('run');
    this.run = Array.from(codes, (code) => folders.indexOf(run.names[code]));
  },
  of(row) {
    return this.run ? `${this.run[row]}-${this.index[row]}` : String(this.index[row]);
  },
  // Undefined where the page has no such row.
  row(key) {
    this.rows ??= new Map(Array.from(this.index, (_, row) => [this.of(row), row]));
    return this.rows.get(key);
  },
};

// A row in a few words: its axes.
async function rowName(row) {
  const parts = [];
  for (const axis of axes) parts.push(`${axis.label}=${nameOf(axis, (await values(axis.name))[row])}`);
  return parts.join(', ') || `point ${(await values('index'))[row]}`;
}

function betterSign(metric) {
  return columns.get(metric)?.better === 'higher' ? 1 : -1;
}

const columnTitle = ({label, unit}) => (unit ? `${label} [${unit}]` : label);
const metricTitle = (metric) => columnTitle(columns.get(metric));

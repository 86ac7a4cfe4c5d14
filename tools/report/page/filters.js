'use strict';
// Which points count: values of axes that are ticked, and limits on figures. All panels follow.
// In a link: f.<axis>=only a b (or: not c; the shorter of the two), m.<figure>=low~high (either may be empty). Values
// stand there by their names, so that a link still holds when the page is made again.

const filters = {
  rows: [],     // that pass and are ok
  outside: [],  // ok and ticked, but beyond a limit on a figure
  works: null,  // flags of rows that are ok
  shown: null,  // flags of those among `rows`
};

function codeOf(axis, name) {
  axis.codes ??= new Map(axis.names.map((each, code) => [each, code]));
  return axis.codes.get(name);
}

// Codes of an axis that are ticked; null: all of them.
function tickedCodes(axis) {
  const text = view.settings.get(`f.${axis.name}`);
  if (text === null) return null;
  const [rule, ...names] = text.split(' ');
  const named = new Set(names.map((name) => codeOf(axis, decoded(name))).filter((code) => code !== undefined));
  return rule === 'not' ? new Set(axis.names.map((_, code) => code).filter((code) => !named.has(code))) : named;
}

// A link may have been cut or changed by hand.
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function limitsOf(name) {
  const text = view.settings.get(`m.${name}`);
  if (text === null) return null;
  const [low, high] = text.split('~').map((part) => (part === '' || part === undefined ? NaN : Number(part)));
  // As exact as the figures of the page, so that a limit at the best point does not shut it out.
  return {
    low: Number.isFinite(low) ? Math.fround(low) : -Infinity,
    high: Number.isFinite(high) ? Math.fround(high) : Infinity
  };
}

function setLimits(name, low, high) {
  const text = (value) => (Number.isFinite(value) ? String(Number(value.toPrecision(9))) : '');
  view.set(`m.${name}`, text(low) || text(high) ? `${text(low)}~${text(high)}` : '');
}

// Nobody ticks more boxes than this, and a browser takes seconds to lay out a hundred thousand.
const MOST_TICKS = 400;
const isWide = (axis) => axis.names.length > MOST_TICKS;

// What may have limits: figures, and axes of too many numbers to tick.
const limitable = [...axes.filter((axis) => isWide(axis) && axis.numbers !== undefined), ...metrics];
const limited = () => limitable.filter((column) => view.settings.has(`m.${column.name}`));

// Flags of rows whose axes are ticked. One pass for each axis that hides something.
async function tickedRows() {
  const passes = new Uint8Array(rowCount).fill(1);
  for (const axis of axes) {
    const ticked = tickedCodes(axis);
    if (ticked === null) continue;
    const codes = await values(axis.name);
    const allowed = new Uint8Array(noneOf(codes) < 65536 ? noneOf(codes) + 1 : axis.names.length + 1);
    for (const code of ticked) allowed[code] = 1;
    for (let i = 0; i < rowCount; ++i) passes[i] &= allowed[codes[i]];
  }
  return passes;
}

async function workingRows() {
  const status = await values('status');
  const ok = columns.get('status').names.indexOf('ok');
  return Uint8Array.from(status, (code) => (code === ok ? 1 : 0));
}

async function applyFilters() {
  const passes = await tickedRows();
  filters.works ??= await workingRows();
  const within = new Uint8Array(rowCount).fill(1);
  for (const column of limited()) {
    const {low, high} = limitsOf(column.name);
    const of = await numbersOf(column);
    // A point without the figure cannot keep a limit on it.
    for (let i = 0; i < rowCount; ++i) within[i] &= of[i] >= low && of[i] <= high ? 1 : 0;
  }
  filters.rows = [];
  filters.outside = [];
  for (let i = 0; i < rowCount; ++i) {
    if (passes[i] && filters.works[i]) (within[i] ? filters.rows : filters.outside).push(i);
    within[i] &= passes[i] & filters.works[i];
  }
  filters.shown = within;
}

function setTicked(axis, ticked) {
  const [on, off] = [[], []];
  axis.names.forEach((name, code) => (ticked.has(code) ? on : off).push(encodeURIComponent(name)));
  const rule = off.length < on.length ? ['not', ...off] : ['only', ...on];
  view.set(`f.${axis.name}`, off.length === 0 ? '' : rule.join(' '));
}

async function axisFilter(axis) {
  if (isWide(axis)) {
    const how = axis.numbers === undefined ? 'llmsweep report --where chooses' : 'limit it above';
    return element(
        'p', {class: 'filter', title: axis.description},
        `${axis.label}: ${grouped(axis.names.length)} values, too many to tick (${how})`);
  }
  const boxes = [];
  const state = element('span', {class: 'state'});
  const current = () => new Set(boxes.filter(({box}) => box.checked).map(({code}) => code));
  const list = element('div', {class: 'ticks'});
  for (const code of await orderedCodes(axis)) {
    const box = element('input', {type: 'checkbox', onchange: () => setTicked(axis, current())});
    boxes.push({box, code});
    list.append(element('label', {class: 'tick'}, box, element('span', {}, nameOf(axis, code))));
  }
  const every = (checked) => () => {
    for (const {box} of boxes) box.checked = checked;
    setTicked(axis, current());
  };
  const refresh = () => {
    const ticked = tickedCodes(axis);
    for (const {box, code} of boxes) box.checked = ticked === null || ticked.has(code);
    state.textContent = ticked === null ? '' : ` ${ticked.size} of ${axis.names.length}`;
  };
  refresh();
  view.listen(refresh);
  return element(
      'details', {class: 'filter', open: axis.names.length <= 6 && innerWidth > 860},
      element('summary', {title: axis.description}, axis.label, state),
      element(
          'div', {class: 'row'}, element('button', {type: 'button', onclick: every(true)}, 'all'),
          element('button', {type: 'button', onclick: every(false)}, 'none')),
      list);
}

async function fillFilters() {
  const side = document.getElementById('filters');
  const count = element('p', {id: 'count', role: 'status', 'aria-live': 'polite'});
  const limits = element('div', {id: 'limits'});
  const add = columnBox('Limit a figure', limitable.filter(isChosen), '', addLimit);
  side.append(
      element('h2', {}, 'Which points'), count,
      element('button', {type: 'button', id: 'reset', onclick: resetFilters}, 'Show all'), element('h3', {}, 'Limits'),
      limits, add, element('h3', {}, 'Axes'));
  for (const axis of axes) side.append(await axisFilter(axis));
  if (axes.length === 0) side.append(element('p', {}, 'This run has no axis with more than one value.'));
  const refreshLimits = async () => {
    const names = limited().map((column) => column.name);
    if (limits.dataset.names === names.join()) return;
    limits.dataset.names = names.join();
    limits.replaceChildren(...await Promise.all(names.map((name) => limitControl(columns.get(name)))));
  };
  await refreshLimits();
  view.listen(refreshLimits);
}

function resetFilters() {
  for (const name of [...view.settings.keys()])
    if (/^[fm]\./.test(name)) view.settings.delete(name);
  view.changed('filters');
}

function tellCount() {
  document.getElementById('count').textContent =
      `${grouped(filters.rows.length)} of ${grouped(rowCount)} points are shown`;
}

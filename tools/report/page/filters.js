'use strict';
// Which points count: values of axes that are ticked, and limits on figures. All panels follow.
// In a link: f.<axis>=0.2.5 (codes that are shown), m.<figure>=low~high (either may be empty).

const filters = {
  rows: [],     // that pass and are ok
  outside: [],  // ok and ticked, but beyond a limit on a figure
  shown: 0,     // that pass the ticks, whatever their status
};

function tickedCodes(axis) {
  const text = view.settings.get(`f.${axis.name}`);
  return text === null ? null : new Set(text.split('.').filter((part) => part !== '').map(Number));
}

function limitsOf(metric) {
  const text = view.settings.get(`m.${metric}`);
  if (text === null) return null;
  const [low, high] = text.split('~').map((part) => (part === '' || part === undefined ? NaN : Number(part)));
  return {low: Number.isFinite(low) ? low : -Infinity, high: Number.isFinite(high) ? high : Infinity};
}

function limitedMetrics() {
  return metrics.filter((column) => view.settings.has(`m.${column.name}`));
}

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

async function applyFilters() {
  const passes = await tickedRows();
  const status = await values('status');
  const ok = columns.get('status').names.indexOf('ok');
  const within = new Uint8Array(rowCount).fill(1);
  for (const column of limitedMetrics()) {
    const {low, high} = limitsOf(column.name);
    const of = await values(column.name);
    // A point without the figure cannot keep a limit on it.
    for (let i = 0; i < rowCount; ++i) within[i] &= of[i] >= low && of[i] <= high ? 1 : 0;
  }
  filters.rows = [];
  filters.outside = [];
  filters.shown = 0;
  for (let i = 0; i < rowCount; ++i) {
    filters.shown += passes[i];
    if (!passes[i] || status[i] !== ok) continue;
    (within[i] ? filters.rows : filters.outside).push(i);
  }
}

function setTicked(axis, ticked) {
  const all = ticked.size === axis.names.length;
  view.set(`f.${axis.name}`, all ? '' : [...ticked].sort((a, b) => a - b).join('.') || '.');
}

// Nobody ticks more boxes than this, and a browser takes seconds to lay out a hundred thousand.
const MOST_TICKS = 400;

async function axisFilter(axis) {
  if (axis.names.length > MOST_TICKS) {
    return element(
        'p', {class: 'filter', title: axis.description},
        `${axis.label}: ${grouped(axis.names.length)} values, too many to tick (llmsweep report --where chooses)`);
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

// Two thousand of a figure's values, evenly chosen and sorted: they have the quantiles of all, ten to a slider's step.
function sampleOf(numbers) {
  const every = Math.ceil(numbers.length / 2000);
  const sample = [];
  for (let i = 0; i < numbers.length; i += every)
    if (Number.isFinite(numbers[i])) sample.push(numbers[i]);
  return Float64Array.from(sample).sort();
}

// A limit: a number to type, and a slider over the figure's own quantiles, so that every step hides about
// as many points as the next one.
async function limitControl(column) {
  const sorted = sampleOf(await values(column.name));
  const steps = 200;
  const at = (step) => sorted[Math.round(step / steps * (sorted.length - 1))];
  const side = column.better === 'higher' ? 'low' : 'high';
  const words = side === 'low' ? 'at least' : 'at most';
  const number = element('input', {type: 'number', step: 'any', 'aria-label': `${column.label} ${words}`});
  const slider =
      element('input', {type: 'range', min: '0', max: String(steps), 'aria-label': `${column.label} ${words}`});
  const shown = element('span', {class: 'state'});
  const limit = (value) => view.set(`m.${column.name}`, side === 'low' ? `${value}~` : `~${value}`);
  slider.addEventListener('input', () => limit(Number(at(Number(slider.value)).toPrecision(4))));
  number.addEventListener('change', () => limit(number.value));
  const refresh = () => {
    const limits = limitsOf(column.name);
    if (!limits) return;
    const value = limits[side];
    shown.textContent = ` ${words} ${quantity(value, column.unit)}`;
    if (document.activeElement !== number) number.value = Number.isFinite(value) ? value : '';
    if (document.activeElement === slider) return;
    let step = 0;
    while (step < steps && at(step) < value) ++step;
    slider.value = step;
  };
  refresh();
  view.listen(refresh);
  return element(
      'div', {class: 'limit'},
      element(
          'div', {class: 'row'}, element('strong', {title: column.description}, column.label), shown,
          element(
              'button', {
                type: 'button',
                title: 'remove this limit',
                'aria-label': `remove the limit on ${column.label}`,
                onclick: () => view.set(`m.${column.name}`, '')
              },
              '×')),
      slider, number);
}

async function addLimit(name) {
  const column = columns.get(name);
  view.set(`m.${name}`, column.better === 'higher' ? `${column.least}~` : `~${column.most}`);
}

async function fillFilters() {
  const side = document.getElementById('filters');
  const count = element('p', {id: 'count', role: 'status', 'aria-live': 'polite'});
  const limits = element('div', {id: 'limits'});
  const add = selectBox(
      'Limit a figure', [['', 'choose…'], ...chosenMetrics.map((column) => [column.name, column.label])], '',
      (name) => {
        if (name) addLimit(name);
        add.querySelector('select').value = '';
      });
  side.append(
      element('h2', {}, 'Which points'), count,
      element('button', {type: 'button', id: 'reset', onclick: resetFilters}, 'Show all'), element('h3', {}, 'Limits'),
      limits, add, element('h3', {}, 'Axes'));
  for (const axis of axes) side.append(await axisFilter(axis));
  if (axes.length === 0) side.append(element('p', {}, 'This run has no axis with more than one value.'));
  const refreshLimits = async () => {
    const names = limitedMetrics().map((column) => column.name);
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

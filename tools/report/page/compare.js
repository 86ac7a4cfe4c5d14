'use strict';
// Chosen designs side by side: a column for each, a row for each axis and figure that they differ in.

const MOST_COMPARED = 12;

// A figure of each design, told beside the first design's; the best is marked.
async function figureRow(column, rows) {
  const of = await values(column.name);
  const numbers = rows.map((row) => of[row]);
  const known = numbers.filter(Number.isFinite);
  if (known.length === 0) return null;
  const [low, high] = extentOf(known);
  const best = column.better === 'higher' ? high : low;
  const cells = numbers.map((value, i) => {
    const ratio = i > 0 && numbers[0] > 0 && value > 0 ? Number((value / numbers[0]).toPrecision(3)) : 1;
    const marked = high > low && value === best;
    return element(
        'span', marked ? {class: 'leading', title: 'the best of these'} : {}, quantity(value, column.unit),
        ratio === 1 ? null : element('span', {class: 'state'}, ` ×${shortNumber(ratio)}`));
  });
  return {differs: high > low || known.length < numbers.length, column, cells, numbers};
}

async function axisRow(axis, rows) {
  const codes = await values(axis.name);
  return {
    differs: new Set(rows.map((row) => codes[row])).size > 1,
    column: axis,
    cells: rows.map((row) => nameOf(axis, codes[row])),
    numbers: rows.map((row) => nameOf(axis, codes[row]))
  };
}

async function compareRows(rows) {
  const all = [
    ...await Promise.all(axes.map((axis) => axisRow(axis, rows))),
    ...await Promise.all(chosenMetrics.map((column) => figureRow(column, rows)))
  ].filter(Boolean);
  return view.get('same', '0') === '1' ? all : all.filter(({differs}) => differs);
}

function compareTable(lines, rows, names) {
  const head =
      ['', ...rows.map((row, i) => element('span', {title: names[i]}, `point ${pointKeys.of(row)} `, pinButton(row)))];
  const cells = [];
  for (const [group, list] of groupBy(lines, ({column}) => column.group ?? 'axes')) {
    cells.push([element('strong', {class: 'group'}, group), ...rows.map(() => '')]);
    for (const {column, cells: each} of list)
      cells.push([element('span', {title: columnTip(column)}, column.label), ...each]);
  }
  return table(head, cells, 'Designs side by side');
}

function compareControls() {
  return [
    checkBox('also what is the same', view.get('same', '0') === '1', (on) => view.set('same', on ? '1' : '')),
    forgetButton(),
  ];
}

async function drawCompare() {
  const rows = (await chosenPoints()).slice(0, MOST_COMPARED);
  if (rows.length === 0) return {summary: NO_POINT};
  const lines = await compareRows(rows);
  const names = await Promise.all(rows.map(rowName));
  return {
    summary: `Beside one another: ${chosenText(rows.length)}. × is the multiple of the first one; bold is the best.`,
    body: [compareTable(lines, rows, names)],
    names: ['', ...rows.map((row) => `point ${pointKeys.of(row)}`)],
    rows: () => lines.map(({column, numbers}) => [columnTitle(column), ...numbers]),
  };
}

function addCompare() {
  addPanel({
    id: 'compare',
    title: 'Side by side',
    controls: compareControls,
    draw: drawCompare,
    what:
        'Chosen designs, with every axis and figure that they differ in. Choose points in the Pareto explorer or among the best.'
  });
}

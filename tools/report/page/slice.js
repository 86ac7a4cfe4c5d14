'use strict';
// A slice: one figure along one axis, with every other axis at one value.

const slice = {
  figure: () => metricSetting('slice', data.points.first?.y),
  split: () => axisSetting('split', 'none'),
  scene: null,  // of the last drawing: along which axis, and at what the others are held
};

// The axis along which a point has most others beside it, each one differing from it in this axis alone.
function usualAlong(centre, codes) {
  const count = axes.map(() => 0);
  const codesOf = axes.map((axis) => codes.get(axis));
  for (const row of filters.rows) {
    let other = -1;
    for (let a = 0; a < axes.length; ++a) {
      if (codesOf[a][row] === codesOf[a][centre]) continue;
      other = other < 0 ? a : axes.length;  // a second one
      if (other === axes.length) break;
    }
    if (other >= 0 && other < axes.length && isSetting(axes[other])) ++count[other];
  }
  const places = axes.map((_, a) => a);
  places.sort((a, b) => count[b] - count[a] || axes[b].names.length - axes[a].names.length);
  return axes[places[0]];
}

// What goes along with an axis cannot be held: members of a zip, what a name of the library brings, and draws of a sample.
function isLoose(axis, along, codes, rows) {
  if (axis.sampled) return true;
  return carries({codes: codes.get(along)}, {codes: codes.get(axis)}, rows);
}

// The point that a slice goes through: the first one that the reader has chosen, else the best.
async function sliceCentre() {
  const pinned = view.pins().find((row) => filters.shown[row]);
  const of = await values(slice.figure());
  return pinned ?? bestOf(filters.rows, of, betterSign(slice.figure()), 1)[0];
}

async function sliceScene() {
  const codes = new Map();
  for (const axis of axes) codes.set(axis, await values(axis.name));
  const centre = await sliceCentre();
  const along = columns.get(axisSetting('along', '')) ?? usualAlong(centre, codes);
  const split = slice.split() === along.name ? undefined : columns.get(slice.split());
  const fixed = [];
  const loose = [];
  for (const axis of axes) {
    if (axis === along || axis === split) continue;
    if (isLoose(axis, along, codes, filters.rows)) {
      loose.push(axis);
      continue;
    }
    const wanted = codeOf(axis, view.get(`s.${axis.name}`));
    fixed.push({axis, of: codes.get(axis), code: wanted ?? codes.get(axis)[centre], order: await orderedCodes(axis)});
  }
  const rows = filters.rows.filter((row) => fixed.every(({of, code}) => of[row] === code));
  return {along, split, fixed, loose, rows};
}

function sliceControls() {
  const few = axes.filter((axis) => axis.names.length <= MOST_COLOURS).map((axis) => [axis.name, axis.label]);
  return [
    figureBox('Figure', slice.figure(), (name) => view.set('slice', name)),
    selectBox(
        'Along', axes.map((axis) => [axis.name, axis.label]), slice.scene?.along.name,
        (name) => view.set('along', name)),
    selectBox('A line for each', [['none', 'nothing'], ...few], slice.split(), (name) => view.set('split', name)),
    ...(slice.scene?.fixed ?? [])
        .map(
            ({axis, code, order}) => selectBox(
                axis.label, order.map((each) => [String(each), nameOf(axis, each)]), String(code),
                (each) => view.set(`s.${axis.name}`, axis.names[each]))),
    element('button', {type: 'button', onclick: throughCentre}, 'Through the chosen or best point'),
  ];
}

function throughCentre() {
  for (const axis of axes) view.note(`s.${axis.name}`, '');
  view.changed('slice');
}

const MOST_SLICED = 1000;

// Where a row is along the axis: at its number among those that the axis spans, or at its place in the list.
async function placesAlong(axis) {
  const order = await orderedCodes(axis);
  const numbers = await axisNumbers(axis);
  if (numbers) {
    axis.span ??= [...new Set(numbers)].filter(Number.isFinite);
    return {at: (row) => numbers[row], names: null, span: axis.span};
  }
  const codes = await values(axis.name);
  const place = new Map(order.map((code, i) => [code, i]));
  return {at: (row) => place.get(codes[row]), names: order.map((code) => nameOf(axis, code))};
}

// Few values are marked themselves.
const marksAt = (list) =>
    (list.length > 12 ? {} :
                        {axisLabel: {customValues: list}, axisTick: {customValues: list}, splitLine: {show: false}});

const spreadsWidely = ([low, high]) => low > 0 && high / low > 20;

function sliceOption(groups, {at, names, span}, of, {along, loose}, column) {
  const rows = groups.flatMap((group) => group.rows);
  const across = names ? null : extentOf(span);
  const up = extentOf(rows.map((row) => of[row]));
  const [logX, logY] = [!names && spreadsWidely(across), spreadsWidely(up)];
  const title = columnTitle(along);
  const xAxis = names ? categoryAxis(names, along, false) : chartAxis({
    type: logX ? 'log' : 'value',
    name: title,
    ...niceRange(across, logX),
    ...marksAt(span),
  });
  if (!names) xAxis.axisLabel.formatter = (value) => quantity(value, along.unit);
  return {
    grid: {left: 20, right: 30, top: groups.length > 1 ? 50 : 15, bottom: 10, outerBoundsMode: 'same'},
    legend: {type: 'scroll', top: 0, show: groups.length > 1, textStyle: {color: themeColours().text}},
    xAxis,
    yAxis: valueAxis(column.name, logY, niceRange(up, logY)),
    series: groups.map((group) => ({
                         name: group.name || column.label,
                         type: loose.some((axis) => axis.sampled) || along.sampled ? 'scatter' : 'line',
                         symbol: symbolOf(group.number),
                         symbolSize: 8,
                         itemStyle: {color: colourOf(group.number)},
                         data: group.rows.map((row) => [at(row), of[row]])
                       })),
    tooltip: {
      ...baseOption().tooltip,
      trigger: 'item',
      formatter: (item, ticket, show) => {
        tipOf(groups[item.seriesIndex].rows[item.dataIndex], column.name).then((tip) => show(ticket, tip));
        return lines('…');
      }
    },
  };
}

function sliceSummary({along, fixed, loose}, column, count) {
  const held = fixed.map(({axis, code}) => `${axis.label} = ${nameOf(axis, code)}`);
  const free = loose.map((axis) => axis.label);
  return `${column.label} along ${along.label}, ${grouped(count)} ${count === 1 ? 'point' : 'points'}${
      held.length ? ` with ${held.join(', ')}` :
                    ''}.${free.length ? ` Not held, since they move along or are drawn: ${free.join(', ')}.` : ''}`;
}

async function drawSlice(panel) {
  if (axes.length === 0 || !slice.figure()) return {summary: 'A slice needs an axis with more than one value.'};
  if (filters.rows.length === 0) return {summary: NO_POINT};
  const scene = await sliceScene();
  slice.scene = scene;
  panel.remake();
  const column = columns.get(slice.figure());
  const of = await values(column.name);
  const along = await placesAlong(scene.along);
  const every = Math.ceil(scene.rows.length / MOST_SLICED) || 1;
  const rows = scene.rows.filter((row, i) => i % every === 0 && Number.isFinite(of[row]) && along.at(row) !== undefined)
                   .sort((a, b) => along.at(a) - along.at(b) || a - b);
  if (rows.length === 0)
    return {summary: `${sliceSummary(scene, column, 0)} Nothing there works or is within the limits.`};
  const groups = await groupRows(rows, scene.split?.name ?? 'none');
  return {
    option: sliceOption(groups, along, of, scene, column),
    summary: sliceSummary(scene, column, rows.length),
    click: (event) => view.toggle_pin(groups[event.seriesIndex].rows[event.dataIndex]),
    ...await pointTable(rows, [column.name]),
  };
}

function addSlice() {
  addPanel({
    id: 'slice',
    title: 'Slice',
    controls: sliceControls,
    draw: drawSlice,
    what:
        'One figure along one axis while the others stay: those of the first chosen point, or of the best, until you set them.'
  });
}

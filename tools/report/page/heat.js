'use strict';
// One figure over two axes; what the other axes do is put together by the best, the median or the mean.

const HEAT_RULES = {
  best: 'the best',
  median: 'the median',
  mean: 'the mean',
  worst: 'the worst'
};
const heat = {
  of: () => metricSetting('heat', data.points.first?.y),
  across: () => axisSetting('hx', usualHeatAxes()[0]),
  up: () => axisSetting('hy', usualHeatAxes()[1]),
  rule: () => (view.get('hrule', 'best') in HEAT_RULES ? view.get('hrule', 'best') : 'best'),
};

function usualHeatAxes() {
  const names = axes.filter((axis) => axis.names.length <= 60).map((axis) => axis.name);
  return [names[1] ?? names[0] ?? 'none', names[0] ?? 'none'];
}

function heatControls() {
  const wanted = axes.map((axis) => [axis.name, axis.label]);
  return [
    figureBox('Figure', heat.of(), (name) => view.set('heat', name)),
    selectBox('Across', wanted, heat.across(), (name) => view.set('hx', name)),
    selectBox('Up', wanted, heat.up(), (name) => view.set('hy', name)),
    selectBox('Of all other axes', Object.entries(HEAT_RULES), heat.rule(), (name) => view.set('hrule', name)),
  ];
}

function combined(list, rule, sign) {
  if (rule === 'median') return median(list);
  if (rule === 'mean') return list.reduce((sum, value) => sum + value, 0) / list.length;
  const most = (rule === 'best') === (sign > 0);
  return list.reduce((a, b) => (most ? Math.max(a, b) : Math.min(a, b)));
}

const MOST_CELLS = 10000;

async function heatCells(of, sign) {
  const [across, up] = [columns.get(heat.across()), columns.get(heat.up())];
  const [xs, ys] = [await values(across.name), await values(up.name)];
  const lists = new Map();
  const width = across.names.length + 1;
  for (const row of filters.rows) {
    if (!Number.isFinite(of[row]) || xs[row] >= across.names.length || ys[row] >= up.names.length) continue;
    const cell = ys[row] * width + xs[row];
    if (!lists.has(cell)) lists.set(cell, []);
    lists.get(cell).push(of[row]);
  }
  const [xOrder, yOrder] = [await orderedCodes(across), await orderedCodes(up)];
  const xPlace = new Map(xOrder.map((code, place) => [code, place]));
  const yPlace = new Map(yOrder.map((code, place) => [code, place]));
  const cells = [...lists]
                    .slice(0, MOST_CELLS)
                    .map(
                        ([cell, list]) =>
                            [xPlace.get(cell % width), yPlace.get(Math.floor(cell / width)),
                             combined(list, heat.rule(), sign), list.length]);
  return {
    cells,
    xNames: xOrder.map((code) => nameOf(across, code)),
    yNames: yOrder.map((code) => nameOf(up, code)),
    across,
    up
  };
}

function heatOption({cells, xNames, yNames, across, up}, column, narrow) {
  const sign = betterSign(column.name);
  const {text, back} = themeColours();
  // Figures of designs spread over orders of magnitude: colours follow the logarithm where there is one.
  const log = cells.every((cell) => cell[2] > 0);
  const shade = (value) => (log ? Math.log10(value) : value);
  const shades = cells.map((cell) => shade(cell[2]));
  const [darkest, lightest] = [Math.min(...shades), Math.max(...shades)];
  const isLight = (value) => ((value - darkest) / (lightest - darkest || 1) > 0.55) === (sign > 0);
  return {
    grid: {left: narrow ? 0 : 20, right: narrow ? 5 : 100, top: 20, bottom: narrow ? 60 : 10, outerBoundsMode: 'same'},
    xAxis: categoryAxis(xNames, across, narrow),
    yAxis: categoryAxis(yNames, up, narrow),
    visualMap: {
      min: darkest,
      max: lightest,
      dimension: 2,
      calculable: false,
      ...(narrow ? {orient: 'horizontal', left: 'center', bottom: 0} : {orient: 'vertical', right: 0, top: 'middle'}),
      textStyle: {color: text},
      formatter: (value) => quantity(log ? 10 ** value : value, column.unit),
      // Light is better, on both themes; viridis reads in print and to the colour-blind.
      inRange: {color: sign > 0 ? VIRIDIS : [...VIRIDIS].reverse()}
    },
    series: [{
      type: 'heatmap',
      data: cells.map(
          (cell, i) => ({value: [cell[0], cell[1], shades[i]], label: {color: isLight(shades[i]) ? '#111' : '#fff'}})),
      itemStyle: {borderColor: back, borderWidth: 1},
      label: {
        show: cells.length <= 150 && !narrow,
        fontSize: 11,
        formatter: (item) => quantity(cells[item.dataIndex][2], column.unit)
      }
    }],
    tooltip: {
      ...baseOption().tooltip,
      formatter: (item) => {
        const cell = cells[item.dataIndex];
        return lines(
            `${across.label}: ${xNames[cell[0]]}`, `${up.label}: ${yNames[cell[1]]}`,
            `${column.label}: ${quantity(cell[2], column.unit)}`, `${grouped(cell[3])} points`);
      }
    },
  };
}

function categoryAxis(names, axis, narrow) {
  const {text, faint, line} = themeColours();
  return {
    type: 'category',
    data: names,
    name: axis.label,
    nameLocation: 'middle',
    nameGap: 30,
    nameTextStyle: {color: text},
    axisLabel: {color: faint, hideOverlap: true, width: narrow ? 60 : 110, overflow: 'truncate'},
    axisLine: {lineStyle: {color: line}},
    splitArea: {show: false},
  };
}

async function drawHeat(panel) {
  if (axes.length === 0 || !heat.of()) return {summary: 'A heat map needs an axis with more than one value.'};
  const column = columns.get(heat.of());
  const map = await heatCells(await values(heat.of()), betterSign(heat.of()));
  const {cells, xNames, yNames, across, up} = map;
  if (cells.length === 0) return {summary: 'No working point is within the limits.'};
  const narrow = panel.section.clientWidth < 600;
  return {
    option: heatOption(map, column, narrow),
    height: Math.min(800, Math.max(260, 110 + 34 * yNames.length)) + (narrow ? 60 : 0),
    summary: `Shown is ${HEAT_RULES[heat.rule()]} ${column.label} of the points that share ${across.label} and ${
        up.label}; lighter is better. Empty: nothing there works or is within the limits.`,
    names: [across.label, up.label, metricTitle(heat.of()), 'points'],
    rows: () => cells.map((cell) => [xNames[cell[0]], yNames[cell[1]], cell[2], cell[3]]),
  };
}

const VIRIDIS = ['#440154', '#46327e', '#365c8d', '#277f8e', '#1fa187', '#4ac16d', '#a0da39', '#fde725'];

function addHeat() {
  addPanel({id: 'heat', title: 'Heat map', controls: heatControls, draw: drawHeat, what: 'One figure over two axes.'});
}

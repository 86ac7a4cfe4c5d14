'use strict';
// Any two figures against one another, coloured and split by axes, with the points that no other beats.

// The axis that tells designs apart at a glance: devices where there are several, else the first.
function usualColour() {
  const names = axes.map((axis) => axis.name);
  const few = axes.filter((axis) => axis.names.length <= 12).map((axis) => axis.name);
  return names.find((name) => /^axis\.(device|cluster|model)$/.test(name)) ?? few[0] ?? 'none';
}

const pareto = {
  x: () => metricSetting('x', data.points.first?.x),
  y: () => metricSetting('y', data.points.first?.y),
  colour: () => axisSetting('colour', usualColour()),
  facet: () => axisSetting('facet', 'none'),
  logX: () => view.get('logx', '1') === '1',
  logY: () => view.get('logy', '1') === '1',
  only: () => view.get('front', '0') === '1',
};
const axisOptions = () => [['none', 'nothing'], ...axes.map((axis) => [axis.name, axis.label])];

// What the reader has zoomed to, in percent of both axes, stays when the chart is drawn again of the same figures.
const zoom = {
  ids: ['across', 'up'],
  ends() {
    const parts = view.get('zoom').split('~').map(Number);
    return parts.length === 4 && parts.every((part) => part >= 0 && part <= 100) ? parts : [0, 100, 0, 100];
  },
  moved({batch, ...one}) {
    const ends = zoom.ends();
    for (const {dataZoomId, start, end} of batch ?? [one]) {
      const at = 2 * zoom.ids.indexOf(dataZoomId);
      if (at >= 0) ends.splice(at, 2, Number(start.toFixed(2)), Number(end.toFixed(2)));
    }
    view.note('zoom', ends.join() === '0,100,0,100' ? '' : ends.join('~'));
  },
  option() {
    const [left, right, bottom, top] = zoom.ends();
    return [
      {id: 'across', type: 'inside', filterMode: 'none', start: left, end: right},
      {id: 'up', type: 'inside', orient: 'vertical', filterMode: 'none', start: bottom, end: top}
    ];
  },
};

function paretoControls() {
  const set = (name) => (value) => {
    view.note('zoom', '');
    view.set(name, value);
  };
  const flag = (name) => (on) => set(name)(on ? '1' : '0');
  return [
    figureBox('Across', pareto.x(), set('x')),
    figureBox('Up', pareto.y(), set('y')),
    selectBox('Colour by', axisOptions(), pareto.colour(), (name) => view.set('colour', name)),
    selectBox('One chart for each', axisOptions(), pareto.facet(), (name) => view.set('facet', name)),
    checkBox('log across', pareto.logX(), flag('logx')),
    checkBox('log up', pareto.logY(), flag('logy')),
    checkBox('only the front', pareto.only(), flag('front')),
  ];
}

const MOST_FACETS = 9;
const MOST_COLOURS = 12;
// From here on points are drawn in bulk, as squares below four pixels: the chart library fills those one by one, and
// anything larger as one huge path, which takes seconds.
const LARGE = 2000;

function pairs(rows, x, y) {
  const flat = new Float64Array(rows.length * 2);
  for (let i = 0; i < rows.length; ++i) {
    flat[2 * i] = x[rows[i]];
    flat[2 * i + 1] = y[rows[i]];
  }
  return flat;
}

// Of marks that would lie on one another only the first is drawn. Cells are as wide as a mark, or twice, four, eight times
// as wide where more marks than this would be left: drawing them is most of what a change of the filters takes.
const CELLS_ACROSS = 320;
const CELLS_UP = 140;
const MOST_MARKS = 12000;
const COARSEST = 3;

// Numbers of cells from one end of an axis to the other.
function cellsOf(rows, numbers, [low, high], log, cells) {
  const [from, to] = log ? [Math.log(low), Math.log(high)] : [low, high];
  const scale = to > from ? (cells - 1) / (to - from) : 0;
  const cellOf = new Uint16Array(rows.length);
  for (let i = 0; i < rows.length; ++i) {
    const number = numbers[rows[i]];
    cellOf[i] = Math.round(((log ? Math.log(number) : number) - from) * scale);
  }
  return cellOf;
}

// The first row of each cell; cells are 2^coarse times as wide and high as those of `across` and `up`.
function firstOfCells(rows, {across, up}, coarse) {
  const taken = new Uint8Array(CELLS_ACROSS * CELLS_UP);
  const first = [];
  for (let i = 0; i < rows.length; ++i) {
    const cell = (up[i] >> coarse) * CELLS_ACROSS + (across[i] >> coarse);
    if (taken[cell]) continue;
    taken[cell] = 1;
    first.push(rows[i]);
  }
  return first;
}

// Rows of each group whose marks are drawn.
function withoutHidden(groups, {x, y, extent, logX, logY}) {
  const cells = groups.map(({rows}) => ({
                             across: cellsOf(rows, x, extent.x, logX, CELLS_ACROSS),
                             up: cellsOf(rows, y, extent.y, logY, CELLS_UP),
                           }));
  for (let coarse = 0;; ++coarse) {
    const marks = groups.map(({rows}, number) => firstOfCells(rows, cells[number], coarse));
    if (coarse === COARSEST || marks.reduce((sum, rows) => sum + rows.length, 0) <= MOST_MARKS) return marks;
  }
}

// Two series a group: its points, and the line through those that none of the group beats.
function groupSeries(group, marks, place, scene, rowsOf) {
  const {x, y, xSign, ySign, only, bulk} = scene;
  const {number} = group;
  const colour = colourOf(number);
  const front = frontOf(group.rows, x, y, xSign, ySign);
  const common = {xAxisIndex: place, yAxisIndex: place, name: group.name || 'points', itemStyle: {color: colour}};
  const series = [];
  if (!only) {
    rowsOf.push(marks);
    series.push({
      ...common,
      type: 'scatter',
      dimensions: ['x', 'y'],
      data: pairs(marks, x, y),
      symbol: symbolOf(number),
      symbolSize: bulk ? 3 : 7,
      large: bulk,
      largeThreshold: 0,
      itemStyle: {color: colour, opacity: bulk ? 0.35 : 0.6}
    });
  }
  rowsOf.push(front);
  series.push({
    ...common,
    type: 'line',
    step: false,
    dimensions: ['x', 'y'],
    data: front.map((row) => [x[row], y[row]]),
    z: 5,
    lineStyle: {color: colour, width: 2},
    symbol: symbolOf(number),
    symbolSize: 8,
    showAllSymbol: true
  });
  return {series, front};
}

// Rings around the points that the reader has chosen.
function ringSeries(facetRows, place, {x, y}, rowsOf) {
  const rows = view.pins().filter((row) => facetRows.includes(row));
  if (rows.length === 0) return [];
  rowsOf.push(rows);
  return [{
    xAxisIndex: place,
    yAxisIndex: place,
    name: 'compared',
    type: 'scatter',
    z: 6,
    symbol: 'circle',
    symbolSize: 16,
    itemStyle: {color: 'transparent', borderColor: themeColours().text, borderWidth: 2},
    data: rows.map((row) => [x[row], y[row]])
  }];
}

// Grids of equal size for charts side by side.
function facetGrid(count, width) {
  const across = count === 1 ? 1 : Math.min(count, width < 700 ? 1 : width < 1100 ? 2 : 3);
  const down = Math.ceil(count / across);
  const height = down === 1 ? 460 : down * 300;
  const grids = [];
  for (let i = 0; i < count; ++i) {
    const left = (i % across) / across * 100;
    const top = Math.floor(i / across) * (height - 50) / down + 50;
    grids.push({
      left: `${left + 0.5}%`,
      width: `${100 / across - 2}%`,
      top: top + (count > 1 ? 20 : -8),
      height: (height - 50) / down - (count > 1 ? 30 : 0),
      outerBoundsMode: 'same'
    });
  }
  return {grids, height};
}

async function tipOf(row, ...names) {
  const texts = [await rowName(row)];
  for (const name of names)
    texts.push(`${columns.get(name).label}: ${quantity((await values(name))[row], columns.get(name).unit)}`);
  return lines(...texts, 'click to compare it below');
}

// What the charts of one drawing share: the figures, which way is better, the points and their extent.
async function paretoScene() {
  const [xName, yName] = [pareto.x(), pareto.y()];
  const scene = {
    xName,
    yName,
    x: await values(xName),
    y: await values(yName),
    xSign: betterSign(xName),
    ySign: betterSign(yName),
    only: pareto.only(),
    logX: pareto.logX(),
    logY: pareto.logY()
  };
  const rows = rowsWith(filters.rows, scene);
  return {...scene, rows, bulk: rows.length > LARGE, extent: sharedExtent(rows, scene)};
}

async function drawPareto(panel) {
  if (!data.points.first) return {summary: 'No figure varies between the points.'};
  const scene = await paretoScene();
  const facets = (await groupRows(scene.rows, pareto.facet())).slice(0, MOST_FACETS);
  const {grids, height} = facetGrid(facets.length, panel.section.clientWidth);
  const rowsOf = [];
  const series = [];
  const titles = [];
  const fronts = [];
  for (const [place, facet] of facets.entries()) {
    const facetTitle = facet.name ? `${columns.get(pareto.facet()).label}: ${facet.name}` : '';
    titles.push({
      text: facetTitle,
      left: grids[place].left,
      top: grids[place].top - 20,
      textStyle: {fontSize: 12, color: themeColours().text}
    });
    const groups = await groupRows(facet.rows, pareto.colour(), MOST_COLOURS);
    const marks = scene.bulk && !scene.only ? withoutHidden(groups, scene) : groups.map((group) => group.rows);
    for (const [i, group] of groups.entries()) {
      const made = groupSeries(group, marks[i], place, scene, rowsOf);
      series.push(...made.series);
      fronts.push(...made.front);
    }
    series.push(...ringSeries(facet.rows, place, scene, rowsOf));
  }
  return {
    option: paretoOption(scene, grids, titles, series, rowsOf),
    height,
    click: (event) => view.toggle_pin(rowsOf[event.seriesIndex][event.dataIndex]),
    summary: `${grouped(scene.rows.length)} points, ${grouped(fronts.length)} on a front of ${
                 betterWord(scene.xName)} and ${betterWord(scene.yName)}.` +
        (facets.length === MOST_FACETS ? ` The first ${MOST_FACETS} charts.` : ''),
    ...await pointTable(fronts, [scene.xName, scene.yName]),
  };
}

function paretoOption(scene, grids, titles, series, rowsOf) {
  const axesOf = (name, log, range) =>
      grids.map((_, place) => valueAxis(name, log, {gridIndex: place, ...niceRange(range, log)}));
  return {
    grid: grids,
    title: titles,
    series,
    legend: {
      type: 'scroll',
      top: 0,
      textStyle: {color: themeColours().text},
      data: [...new Set(series.map((each) => each.name))]
    },
    xAxis: axesOf(scene.xName, scene.logX, scene.extent.x),
    yAxis: axesOf(scene.yName, scene.logY, scene.extent.y),
    dataZoom: grids.length === 1 ? zoom.option() : [],
    tooltip: {
      ...baseOption().tooltip,
      trigger: 'item',
      formatter: (item, ticket, show) => {
        tipOf(rowsOf[item.seriesIndex][item.dataIndex], scene.xName, scene.yName).then((tip) => show(ticket, tip));
        return lines('…');
      }
    },
  };
}

function betterWord(name) {
  return `${columns.get(name).label} (${columns.get(name).better} is better)`;
}

function sharedExtent(rows, {x, y}) {
  const of = (numbers) => {
    let [low, high] = [Infinity, -Infinity];
    for (const row of rows) {
      if (numbers[row] < low) low = numbers[row];
      if (numbers[row] > high) high = numbers[row];
    }
    return [low, high];
  };
  return {x: of(x), y: of(y)};
}

// The rows behind a chart of points: their axes and figures.
async function pointTable(rows, names) {
  const index = await values('index');
  const labels = await Promise.all(axes.map(async (axis) => ({axis, codes: await values(axis.name)})));
  const numbers = await Promise.all(names.map((name) => values(name)));
  return {
    names: ['index', ...axes.map((axis) => axis.label), ...names.map(metricTitle)],
    keys: ['index', ...axes.map((axis) => axis.label), ...names],
    rows: () => rows.map(
        (row) =>
            [index[row], ...labels.map(({axis, codes}) => nameOf(axis, codes[row])), ...numbers.map((of) => of[row])]),
  };
}

function addPareto() {
  addPanel({
    id: 'pareto',
    title: 'Pareto explorer',
    controls: paretoControls,
    draw: drawPareto,
    height: 460,
    on: {datazoom: zoom.moved},
    what:
        'Each mark is a point, of many on one place the first; lines join the points of a colour that no other of it beats in both figures. Click a mark to compare it below. The wheel zooms.'
  });
}

'use strict';
// Parallel coordinates: all axes and some figures beside one another, a line for each point. What is brushed on one of
// them is a filter of the whole page, and filters show here as what is brushed.

const MOST_LINES = 800;  // a twelfth of a second to draw
const MOST_GREY_LINES = 200;
const MOST_MARKED_VALUES = 60;

const parallelFigures = () => {
  const wanted = view.get('figures').split('.').filter((name) => columns.get(name)?.role === 'metric');
  return wanted.length ? wanted : [...new Set([data.points.first?.x, data.points.first?.y])].filter(Boolean);
};

const setFigures = (names) => view.set('figures', [...new Set(names)].join('.'));

function parallelControls() {
  const shown = parallelFigures();
  return [
    columnBox('Add a figure', chosenMetrics, '', (name) => setFigures([...shown, name])),
    ...shown.map(
        (name) => element(
            'button', {
              type: 'button',
              class: 'choice',
              title: `take away ${columnTip(columns.get(name))}`,
              disabled: shown.length === 1,
              onclick: () => setFigures(shown.filter((other) => other !== name))
            },
            `× ${columns.get(name).label}`)),
  ];
}

// One of the lines' places: {column, places(row), option, intervals() of the filter, brush(intervals) sets it}.
async function namedDimension(axis) {
  const order = await orderedCodes(axis);
  const codes = await values(axis.name);
  const placeOf = new Map(order.map((code, place) => [code, place]));
  return {
    column: axis,
    place: (row) => placeOf.get(codes[row]) ?? NaN,
    option: {type: 'category', data: order.map((code) => nameOf(axis, code))},
    intervals() {
      const ticked = tickedCodes(axis);
      if (ticked === null) return [];
      const runs = [];
      order.forEach((code, place) => {
        if (!ticked.has(code)) return;
        if (runs.at(-1)?.[1] === place - 0.6)
          runs.at(-1)[1] = place + 0.4;
        else
          runs.push([place - 0.4, place + 0.4]);
      });
      return runs;
    },
    brush(intervals) {
      const inside = ([low, high]) => order.filter((_, place) => place >= low && place <= high);
      const nearest = ([low, high]) => order[Math.max(0, Math.min(order.length - 1, Math.round((low + high) / 2)))];
      const codesOf = (interval) => (inside(interval).length ? inside(interval) : [nearest(interval)]);
      setTicked(axis, new Set(intervals.length ? intervals.flatMap(codesOf) : order));
    },
  };
}

async function numberDimension(column) {
  const of = await numbersOf(column);
  const sorted = await sampleOf(column);
  const range = [sorted[0], sorted.at(-1)];
  const log = spreadsWidely(range);
  return {
    column,
    place: (row) => of[row],
    option: {
      type: log ? 'log' : 'value',
      min: range[0],
      max: range[1],
      axisLabel: {formatter: (value) => quantity(Number(value.toPrecision(3)), column.unit)}
    },
    intervals() {
      const limits = limitsOf(column.name);
      return limits ? [[Math.max(limits.low, range[0]), Math.min(limits.high, range[1])]] : [];
    },
    brush(intervals) {
      const [low, high] = extentOf(intervals.flat());
      setLimits(column.name, low > range[0] ? low : NaN, high < range[1] ? high : NaN);
    },
  };
}

const dimensionOf = (column) =>
    (column.role === 'axis' && (column.numbers === undefined || column.names.length <= MOST_MARKED_VALUES) ?
         namedDimension(column) :
         numberDimension(column));

// At most `most` of these rows, evenly chosen.
function someOf(rows, most) {
  const every = Math.ceil(rows.length / most) || 1;
  return rows.filter((_, i) => i % every === 0);
}

function parallelOption(dimensions, groups, grey, width) {
  const {text, faint, line, back} = themeColours();
  const turned = dimensions.length > 6;  // names that would touch one another
  const count = groups.reduce((sum, group) => sum + group.rows.length, 0);
  const opacity = Math.max(0.1, Math.min(0.5, 60 / count));
  const apart =
      (width - (turned ? 230 : 170)) / Math.max(1, dimensions.length - 1);  // pixels from one axis to the next
  const placesOf = (rows) => rows.map((row) => dimensions.map(({place}) => place(row)));
  const series = groups.map((group) => ({
                              name: group.name || 'points',
                              type: 'parallel',
                              itemStyle: {color: colourOf(group.number)},
                              lineStyle: {width: 1, opacity, color: colourOf(group.number)},
                              activeOpacity: opacity,
                              data: placesOf(group.rows)
                            }));
  const behind = {
    name: 'filtered out',
    type: 'parallel',
    silent: true,
    lineStyle: {width: 1, opacity: 0.12, color: faint},
    activeOpacity: 0.12,
    data: placesOf(grey)
  };
  return {
    legend: {type: 'scroll', top: 0, textStyle: {color: text}, data: series.map(({name}) => name)},
    parallel: {
      left: 60,
      right: turned ? 170 : 110,
      top: turned ? 110 : 70,
      bottom: 20,
      parallelAxisDefault: {realtime: false}
    },
    parallelAxis: dimensions.map(({column, option}, dim) => ({
                                   dim,
                                   id: column.name,
                                   name: columnTitle(column),
                                   nameTruncate: {maxWidth: turned ? 190 : apart - 8},
                                   nameTextStyle: {color: text, fontSize: 11},
                                   nameRotate: turned ? 20 : 0,
                                   z: 10,  // over the lines
                                   axisLine: {lineStyle: {color: line}},
                                   areaSelectStyle: {width: 16, borderColor: text, color: faint, opacity: 0.35},
                                   ...option,
                                   axisLabel: {
                                     color: text,
                                     textBorderColor: back,
                                     textBorderWidth: 3,
                                     width: Math.max(60, Math.min(apart - 14, 100)),
                                     overflow: 'truncate',
                                     ...option.axisLabel
                                   },
                                 })),
    series: [behind, ...series],
    tooltip: null,  // the chart library has none for lines here, and looks for one all the same
  };
}

let parallelDimensions = [];

function brushed({parallelAxisId, intervals}) {
  parallelDimensions.find(({column}) => column.name === parallelAxisId)?.brush(intervals ?? []);
}

// The filters of the page as brushes, without telling of them as though they were new.
function showBrushes(chart) {
  for (const {column, intervals} of parallelDimensions) {
    const payload = {type: 'axisAreaSelect', parallelAxisId: column.name, intervals: intervals()};
    if (payload.intervals.length) chart.dispatchAction(payload, {silent: true});
  }
}

async function drawParallel(panel) {
  panel.remake();
  if (axes.length === 0 || parallelFigures().length === 0) return {summary: 'Nothing varies.'};
  if (filters.works.indexOf(1) < 0) return {summary: NO_POINT};
  const shownAxes = axes.filter((axis) => !isWide(axis) || axis.numbers !== undefined);
  const shown = [...shownAxes, ...parallelFigures().map((name) => columns.get(name))];
  parallelDimensions = await Promise.all(shown.map(dimensionOf));
  const rows = someOf(filters.rows, MOST_LINES);
  const others = [];
  for (let row = 0; row < rowCount; ++row)
    if (filters.works[row] && !filters.shown[row]) others.push(row);
  return {
    option: parallelOption(
        parallelDimensions, await groupRows(rows, pareto.colour(), MOST_COLOURS), someOf(others, MOST_GREY_LINES),
        panel.section.clientWidth - 36),
    after: showBrushes,
    summary: `${grouped(rows.length)} lines of ${grouped(filters.rows.length)} points${
        rows.length < filters.rows.length ?
            ', evenly chosen' :
            ''}; grey: what the filters hide. Colours are those of the Pareto explorer.`,
    ...await pointTable(rows, parallelFigures()),
  };
}

function addParallel() {
  addPanel({
    id: 'parallel',
    title: 'Parallel coordinates',
    controls: parallelControls,
    draw: drawParallel,
    on: {axisareaselected: brushed},
    what:
        'Drag along an axis to keep what passes there: it becomes a filter of the whole page. Click outside of what is marked to take it away.'
  });
}

'use strict';
// Where the time of chosen points goes, side by side.

const MOST_CHOSEN = 8;
const NO_POINT = 'No working point is within the limits.';

// What the reader has chosen; until then the best point of each colour of the Pareto explorer. Where no figure varies, none is better.
async function chosenPoints() {
  const pins = view.pins();
  if (pins.length) return pins;
  if (!pareto.y()) return filters.rows.slice(0, MOST_CHOSEN);
  const of = await values(pareto.y());
  const sign = betterSign(pareto.y());
  const groups = await groupRows(filters.rows, pareto.colour(), MOST_COLOURS);
  return groups.flatMap((group) => bestOf(group.rows, of, sign, 1)).slice(0, MOST_CHOSEN);
}

function chosenText(count) {
  if (view.pins().length) return `${count} chosen points`;
  return !pareto.y() ? (filters.rows.length > count ? `the first ${count} points` :
                            count === 1 ? 'the one point' :
                                          'all points') :
                                                      `the best point of each colour (${columns.get(pareto.y())?.label}), until you choose others`;
}

// The one of these points that a panel of a single point shows, kept in the link under `name`.
const shownPoint = (name, rows) => rows.find((row) => pointKeys.of(row) === view.get(name)) ?? rows[0];

function pointBox(name, {rows, names}) {
  const shown = rows.length ? pointKeys.of(shownPoint(name, rows)) : '';
  return selectBox('Point', rows.map((row, i) => [pointKeys.of(row), names[i]]), shown, (key) => view.set(name, key));
}

const forgetButton = () =>
    element('button', {type: 'button', onclick: () => view.set('pins', '')}, 'Forget the chosen points');

function breakdownControls() {
  return [
    selectBox(
        'Show', [['share', 'shares of the time'], ['seconds', 'seconds']], view.get('bars', 'share'),
        (name) => view.set('bars', name)),
    forgetButton(),
  ];
}

async function familySeconds(rows) {
  const families = [];
  for (const family of data.kernels.families) {
    const all = await blob(family.blob);
    const seconds = rows.map((row) => all[row]);
    if (seconds.some((value) => value > 0)) families.push({name: family.name, seconds});
  }
  const total = (family) => family.seconds.reduce((sum, value) => sum + value, 0);
  return families.sort((a, b) => total(b) - total(a));
}

function breakdownOption(families, names, ticks) {
  const share = view.get('bars', 'share') !== 'seconds';
  const whole = names.map((_, i) => families.reduce((sum, family) => sum + family.seconds[i], 0));
  const {text, faint, line, back} = themeColours();
  const shown = (family, i) => (share ? (whole[i] > 0 ? 100 * family.seconds[i] / whole[i] : 0) : family.seconds[i]);
  return {
    grid: {left: 10, right: 30, top: 50, bottom: 10, outerBoundsMode: 'same'},
    legend: {type: 'scroll', top: 0, textStyle: {color: text}},
    xAxis: chartAxis({
      type: 'value',
      scale: false,
      max: share ? 100 : undefined,
      name: share ? '% of the time' : 'time on one device [s]',
      axisLabel: {color: faint, formatter: (value) => (share ? `${value}%` : quantity(value, 's'))}
    }),
    yAxis:
        // Names of two lines would lie on one another where the browser has no font to measure a line by.
        {
          type: 'category',
          inverse: true,
          data: ticks,
          axisLabel: {color: text, lineHeight: 14},
          axisLine: {lineStyle: {color: line}}
        },
    series: families.map((family, number) => ({
                           name: family.name,
                           type: 'bar',
                           stack: 'all',
                           barMaxWidth: 34,
                           data: names.map((_, i) => shown(family, i)),
                           itemStyle: {
                             color: colourOf(number),
                             borderColor: back,
                             borderWidth: 1,
                             ...(number >= COLOURS.length ?
                                     {decal: {symbol: 'rect', dashArrayX: [1, 0], dashArrayY: [3, 4], rotation: 0.8}} :
                                     {})
                           }
                         })),
    tooltip: {
      ...baseOption().tooltip,
      trigger: 'item',
      formatter: (item) => lines(
          names[item.dataIndex],
          `${families[item.seriesIndex].name}: ` +
              `${quantity(families[item.seriesIndex].seconds[item.dataIndex], 's')}, ${
                  percent(families[item.seriesIndex].seconds[item.dataIndex], whole[item.dataIndex])}`)
    },
  };
}

// The name of a bar: its colour in the Pareto explorer, where points have one, and the number of the point.
async function barNames(rows) {
  const index = await values('index');
  const axis = columns.get(pareto.colour());
  const codes = axis ? await values(axis.name) : null;
  return rows.map((row) => `${codes ? `${nameOf(axis, codes[row])}\n` : ''}point ${index[row]}`);
}

async function drawBreakdown() {
  const rows = await chosenPoints();
  if (rows.length === 0) return {summary: NO_POINT};
  const families = await familySeconds(rows);
  const names = await Promise.all(rows.map(rowName));
  const index = await values('index');
  return {
    option: breakdownOption(families, names, await barNames(rows)),
    height: 120 + 46 * rows.length,
    summary: `Time on one device by family of kernels, of ${
        chosenText(rows.length)}. Collectives, gaps between kernels and waiting for the host are families, too.`,
    body: [element(
        'ul', {class: 'chosen'},
        ...rows.map((row, i) => element('li', {}, `point ${index[row]}: ${names[i]} `, pinButton(row))))],
    names: ['point', ...families.map((family) => `${family.name} [s]`)],
    rows: () => rows.map((row, i) => [names[i], ...families.map((family) => family.seconds[i])]),
  };
}

function addBreakdown() {
  if (!data.kernels) return;
  addPanel({
    id: 'breakdown',
    title: 'Where the time goes',
    controls: breakdownControls,
    draw: drawBreakdown,
    what:
        'Kernels, communication, host and gaps of chosen points. Choose points in the Pareto explorer or among the best.'
  });
}

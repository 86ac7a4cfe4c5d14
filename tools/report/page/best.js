'use strict';
// The best points by one figure within the limits, why the others lost, and who would win without the limits.

const best = {
  by: () => metricSetting('by', data.points.first?.y),
  group: () => axisSetting('bestof', 'none'),
};

function bestControls() {
  return [
    figureBox('Best by', best.by(), (name) => view.set('by', name)),
    selectBox('Best of each', axisOptions(), best.group(), (name) => view.set('bestof', name)),
  ];
}

// Share of each family in the time of a point.
async function timeShares(row) {
  const shares = new Map();
  if (!data.kernels) return shares;
  let whole = 0;
  for (const family of data.kernels.families) {
    const seconds = (await blob(family.blob))[row];
    shares.set(family.name, seconds);
    whole += seconds;
  }
  for (const [name, seconds] of shares) shares.set(name, whole > 0 ? seconds / whole : 0);
  return shares;
}

// "parallel.tp 4 instead of 8; attn_decode takes 31% of its time, 22% of the winner's"
async function whyLost(row, winner) {
  const parts = [];
  for (const axis of axes) {
    const codes = await values(axis.name);
    if (codes[row] !== codes[winner])
      parts.push(`${axis.label} ${nameOf(axis, codes[row])} instead of ${nameOf(axis, codes[winner])}`);
  }
  const [mine, theirs] = [await timeShares(row), await timeShares(winner)];
  const gaps = [...mine]
                   .map(([name, share]) => [name, share, theirs.get(name) ?? 0])
                   .sort((a, b) => (b[1] - b[2]) - (a[1] - a[2]));
  if (gaps.length && gaps[0][1] - gaps[0][2] > 0.02) {
    const [name, share, other] = gaps[0];
    parts.push(`${name} takes ${percent(share, 1)} of its time, ${percent(other, 1)} of the winner's`);
  }
  return parts.join('; ');
}

// Which limit a point breaks, and by how much.
async function brokenLimits(row) {
  const texts = [];
  for (const column of limited()) {
    const {low, high} = limitsOf(column.name);
    const value = (await numbersOf(column))[row];
    if (Number.isFinite(value) && value >= low && value <= high) continue;
    texts.push(`${column.label} is ${quantity(value, column.unit)}`);
  }
  return texts.join('; ');
}

function pinButton(row) {
  const on = view.pins().includes(row);
  return element(
      'button', {type: 'button', 'aria-pressed': String(on), onclick: () => view.toggle_pin(row)},
      on ? 'compared' : 'compare');
}

async function bestRows(by, sign) {
  const of = await values(by);
  if (best.group() === 'none') return bestOf(filters.rows, of, sign, 10);
  const groups = await groupRows(filters.rows, best.group());
  const winners = groups.flatMap((group) => bestOf(group.rows, of, sign, 1));
  return bestOf(winners, of, sign, 50);
}

async function drawBest() {
  const by = best.by();
  if (!by) return {summary: 'No figure varies between the points.'};
  const sign = betterSign(by);
  const of = await values(by);
  const rows = await bestRows(by, sign);
  if (rows.length === 0) return {summary: 'No working point is within the limits.'};
  const winner = rows[0];
  const {unit} = columns.get(by);
  const lost = await Promise.all(rows.map((row) => (row === winner ? 'the best' : whyLost(row, winner))));
  const labels = await Promise.all(axes.map(async (axis) => ({axis, codes: await values(axis.name)})));
  const cells = rows.map(
      (row, i) =>
          [pinButton(row), ...labels.map(({axis, codes}) => nameOf(axis, codes[row])), quantity(of[row], unit),
           row === winner ? '' : percent(Math.abs(of[row] - of[winner]), Math.abs(of[winner])), lost[i]]);
  const names = ['', ...axes.map((axis) => axis.label), columns.get(by).label, 'behind', 'what is different'];
  const shut = bestOf(filters.outside, of, sign, 5).filter((row) => sign * of[row] > sign * of[winner]);
  const shutCells = await Promise.all(shut.map(
      async (row) =>
          [pinButton(row), ...labels.map(({axis, codes}) => nameOf(axis, codes[row])), quantity(of[row], unit),
           await brokenLimits(row)]));
  return {
    summary: `Best of ${grouped(filters.rows.length)}: ${await rowName(winner)} with ${quantity(of[winner], unit)}.`,
    body: [
      table(names, cells, 'Best points', ['', ...axes.map(() => ''), columnTip(columns.get(by))]),
      ...(shut.length ?
              [
                element('h3', {}, 'Better, but outside the limits'),
                table(
                    ['', ...axes.map((axis) => axis.label), columns.get(by).label, 'which limit'], shutCells,
                    'Better points outside the limits')
              ] :
              [])
    ],
    ...await pointTable(
        rows,
        [
          by,
          ...limited().filter((column) => column.role === 'metric' && column.name !== by).map((column) => column.name)
        ]),
  };
}

function addBest() {
  addPanel({
    id: 'best',
    title: 'Best configurations',
    controls: bestControls,
    draw: drawBest,
    what:
        'The best points within the limits at the side, what makes the others different, and points that would win if a limit were lifted.'
  });
}

'use strict';
// The arithmetic of the page: rows that pass, fronts, effects of axes. tools/query has the same for the
// terminal, and a test holds the two to one another.

// Rows that no other row beats. `rows` is any list of rows; signs say whether more (1) or less (-1) is better.
// Linear first: by the best y of each slice of x almost every row is known to be beaten; the rest is sorted.
function frontOf(rows, x, y, xSign, ySign) {
  const slices = 512;
  let least = Infinity;
  let most = -Infinity;
  for (const row of rows) {
    const value = x[row] * xSign;
    if (value < least) least = value;
    if (value > most) most = value;
  }
  const scale = most > least ? slices / (most - least) : 0;
  const sliceOf = new Uint16Array(rows.length);
  const beyond = new Float64Array(slices + 1).fill(-Infinity);
  for (let i = 0; i < rows.length; ++i) {
    const slice = Math.min(slices - 1, Math.floor((x[rows[i]] * xSign - least) * scale));
    sliceOf[i] = slice;
    const value = y[rows[i]] * ySign;
    if (value > beyond[slice]) beyond[slice] = value;
  }
  for (let s = slices - 1; s >= 0; --s) beyond[s] = Math.max(beyond[s], beyond[s + 1]);
  const left = [];
  for (let i = 0; i < rows.length; ++i)
    if (y[rows[i]] * ySign >= beyond[sliceOf[i] + 1]) left.push(rows[i]);
  left.sort((a, b) => (x[b] - x[a]) * xSign || (y[b] - y[a]) * ySign || a - b);
  const front = [];
  let best = -Infinity;
  let bestX = NaN;
  for (const row of left) {
    const value = y[row] * ySign;
    if (value > best || (value === best && x[row] === bestX)) {
      front.push(row);
      best = value;
      bestX = x[row];
    }
  }
  return front;
}

function groupBy(list, nameOfItem) {
  const groups = new Map();
  for (const item of list) groups.set(nameOfItem(item), [...(groups.get(nameOfItem(item)) ?? []), item]);
  return groups;
}

// Rows that have both figures; above zero where a logarithm is taken of them.
function rowsWith(rows, {x, y, logX, logY}) {
  const [leastX, leastY] = [logX ? 0 : -Infinity, logY ? 0 : -Infinity];
  const some = [];
  for (const row of rows)
    if (x[row] > leastX && y[row] > leastY && x[row] < Infinity && y[row] < Infinity) some.push(row);
  return some;
}

// Rows by the value of an axis, in its order; all in one where there is no axis. An axis of more than `most`
// values is cut into that many groups of neighbours: nobody tells a hundred colours apart.
async function groupRows(rows, axisName, most = Infinity) {
  if (axisName === 'none') return [{number: 0, name: '', rows}];
  const axis = columns.get(axisName);
  const codes = await values(axisName);
  const order = await orderedCodes(axis);
  const count = Math.min(order.length, most);
  const groups = Array.from({length: count + 1}, (_, number) => ({number, name: NOT_THERE, rows: []}));
  const groupOf = new Uint32Array(noneOf(codes) < 65536 ? noneOf(codes) + 1 : order.length + 1).fill(count);
  for (let number = 0; number < count; ++number) {
    const [first, end] = [Math.floor(number * order.length / count), Math.floor((number + 1) * order.length / count)];
    for (let place = first; place < end; ++place) groupOf[order[place]] = number;
    groups[number].name = end - first === 1 ? nameOf(axis, order[first]) :
                                              `${nameOf(axis, order[first])} … ${nameOf(axis, order[end - 1])}`;
  }
  for (const row of rows) groups[groupOf[codes[row]] ?? count].rows.push(row);
  return groups.filter((group) => group.rows.length > 0);
}

// The best `count` rows, best first, equal ones in the order of the table. Rows that cannot be among them are
// passed over at the price of one comparison.
function bestOf(rows, of, sign, count) {
  const before = (a, b) => sign * (of[b] - of[a]) || a - b;
  let kept = [];
  let worst = -Infinity;
  for (const row of rows) {
    if (!(sign * of[row] > worst)) continue;  // not for what is no number, either
    kept.push(row);
    if (kept.length < 4 * count) continue;
    kept = kept.sort(before).slice(0, count);
    worst = sign * of[kept[count - 1]];
  }
  return kept.sort(before).slice(0, count);
}

function median(list) {
  const sorted = Float64Array.from(list).sort();
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

const MOST_LEVELS = 24;

// Of a sample, where nearly every row has a value of its own, few enough levels that each has several rows.
function mostLevels(axis, rows) {
  return axis.sampled ? Math.min(MOST_LEVELS, Math.max(2, Math.floor(Math.sqrt(rows.length)))) : MOST_LEVELS;
}

function levelsOf(axis, rows, codes, numbers, distinct) {
  const most = mostLevels(axis, rows);
  if (distinct <= most || !numbers) return rows.map((row) => codes[row]);
  const order = rows.map((_, i) => i).sort((a, b) => numbers[rows[a]] - numbers[rows[b]] || a - b);
  const levels = new Array(rows.length);
  order.forEach((i, rank) => {
    levels[i] = Math.floor(rank * most / order.length);
  });
  return levels;
}

// Sums of many figures leave a rest in their last digits, which is no effect.
const ROUNDING = 1e-12;
function withoutRounding(effect) {
  return Math.abs(effect) < ROUNDING ? 0 : effect;
}

function explainedShare(figure, levels) {
  const sums = new Map();
  let mean = 0;
  figure.forEach((value, i) => {
    const sum = sums.get(levels[i]) ?? {total: 0, count: 0};
    sum.total += value;
    sum.count += 1;
    sums.set(levels[i], sum);
    mean += value / figure.length;
  });
  let between = 0;
  for (const {total, count} of sums.values()) between += count * (total / count - mean) ** 2;
  let whole = 0;
  let largest = 0;
  for (const value of figure) {
    whole += (value - mean) ** 2;
    largest = Math.max(largest, Math.abs(value));
  }
  // Of a figure that is the same everywhere there is nothing to explain, though its mean may be off by a rounding.
  if (whole <= figure.length * (ROUNDING * largest) ** 2) return 0;
  return withoutRounding(between / whole);
}

// Slope of log figure over log axis within sets of rows that agree on all other axes.
function slopeWithin(figure, rows, numbers, sets) {
  const sums = new Map();
  const usable = (i) => numbers[rows[i]] > 0;
  figure.forEach((value, i) => {
    if (!usable(i)) return;
    const sum = sums.get(sets[i]) ?? {x: 0, y: 0, count: 0};
    sum.x += Math.log(numbers[rows[i]]);
    sum.y += value;
    sum.count += 1;
    sums.set(sets[i], sum);
  });
  let xy = 0;
  let xx = 0;
  figure.forEach((value, i) => {
    if (!usable(i)) return;
    const sum = sums.get(sets[i]);
    const x = Math.log(numbers[rows[i]]) - sum.x / sum.count;
    xy += x * (value - sum.y / sum.count);
    xx += x * x;
  });
  return xx > 0 ? withoutRounding(xy / xx) : NaN;
}

function setEffect(figure, sets, codes, rows, sign) {
  const extremes = new Map();
  figure.forEach((value, i) => {
    const set = extremes.get(sets[i]);
    if (!set) {
      extremes.set(sets[i], {count: 1, least: value, most: value, best: codes[rows[i]], bestFigure: value});
      return;
    }
    if (sign * value > sign * set.bestFigure) {
      set.best = codes[rows[i]];
      set.bestFigure = value;
    }
    set.least = Math.min(set.least, value);
    set.most = Math.max(set.most, value);
    set.count += 1;
  });
  let count = 0;
  let spread = 0;
  const wins = new Map();
  for (const set of extremes.values()) {
    if (set.count < 2) continue;
    count += 1;
    spread += set.most - set.least;
    if (set.most > set.least) wins.set(set.best, (wins.get(set.best) ?? 0) + 1);  // where all are alike none is best
  }
  const best = [...wins].sort((a, b) => b[1] - a[1] || a[0] - b[0])[0];
  return {sets: count, ratio: count ? Math.exp(spread / count) : NaN, best: best ? best[0] : -1};
}

// The same number, or text, for rows that agree on all these axes.
function setsWithout(others, rows) {
  const sizes = others.map((other) => other.axis.names.length + 1);
  const fits = sizes.reduce((product, size) => product * size, 1) < Number.MAX_SAFE_INTEGER;
  if (!fits) return rows.map((row) => others.map((other) => other.codes[row]).join(','));
  const sets = new Float64Array(rows.length);
  others.forEach((other, o) => rows.forEach((row, i) => {
    sets[i] = sets[i] * sizes[o] + Math.min(other.codes[row], sizes[o] - 1);
  }));
  return sets;
}

// Replicates and seeds are numbered: the number is no amount of anything, and none of them is a better choice.
function isSetting(axis) {
  return axis.name !== 'axis.replicate' && axis.name !== 'axis.seed';
}

// Whether the other one does not move unless this one does.
function carries(one, other, used) {
  const known = new Map();
  return used.every((row) => {
    if (!known.has(one.codes[row])) known.set(one.codes[row], other.codes[row]);
    return known.get(one.codes[row]) === other.codes[row];
  });
}

// Whether an axis moves another one along, as a name of the library does: a model its formats, an engine its host. The other
// one then says nothing of its own.
function brings(one, other, used) {
  const named = (axis) => axis.axis.name.replace(/^axis\./, '');
  const brought = [['model', 'quant.'], ['serving', 'host'], ['train', 'host']].some(
      ([name, along]) =>
          named(one).endsWith(name) && named(other).startsWith(named(one).slice(0, -name.length) + along));
  return brought && carries(one, other, used);
}

// As members of a zip do: what one of them alone would do no point says. Of a sample, whose columns are settings and where
// nearly every value is one of its kind, that says nothing.
function alwaysMoveTogether(one, other, used) {
  const listed = (axis) => axis.axis.name.startsWith('axis.');
  return one !== other && listed(one) && listed(other) && carries(one, other, used) && carries(other, one, used);
}

// Which axis moves a figure: what tools/query/sensitivity.h says of each.
async function axisEffects(rows, metric) {
  const all = await values(metric);
  const used = rows.filter((row) => Number.isFinite(all[row]));
  const positive = used.every((row) => all[row] > 0);
  const figure = used.map((row) => (positive ? Math.log(all[row]) : all[row]));
  const moving = [];
  for (const axis of axes) {
    const codes = await values(axis.name);
    const distinct = new Set(used.map((row) => codes[row])).size;
    if (distinct > 1) moving.push({axis, codes, distinct, numbers: await axisNumbers(axis)});
  }
  const known = moving.filter((axis) => !moving.some((other) => other !== axis && brings(other, axis, used)));
  const effects = known.map(({axis, codes, distinct, numbers}, a) => {
    let sets = setsWithout(known.filter((_, b) => b !== a), used);
    const effect = setEffect(figure, sets, codes, used, betterSign(metric));
    if (effect.sets === 0) sets = used.map(() => 0);
    const tied = effect.sets === 0 && known.some((other) => alwaysMoveTogether(known[a], other, used));
    const hasSlope = positive && numbers && isSetting(axis) && !tied;
    return {
      axis,
      values: distinct,
      sets: effect.sets,
      ratio: positive ? effect.ratio : NaN,
      best: effect.best < 0 || !isSetting(axis) ? '' : nameOf(axis, effect.best),
      share: explainedShare(figure, levelsOf(axis, used, codes, numbers, distinct)),
      elasticity: hasSlope ? slopeWithin(figure, used, numbers, sets) : NaN,
    };
  });
  return effects.sort((a, b) => b.share - a.share);
}

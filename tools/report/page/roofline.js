'use strict';
// The kernels of one chosen point against the peaks of its device.

let rooflineChoice = {rows: [], names: []};

const rooflineControls = () => [pointBox('roof', rooflineChoice)];

// The first kernel of a point: rows are sorted by point.
function firstKernel(points, row) {
  let low = 0;
  let high = points.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (points[middle] < row)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

async function kernelsOf(row) {
  const of = data.kernels.rows;
  const points = await blob(of.point);
  const [ops, families, bounds, phases] =
      await Promise.all([of.op, of.family, of.bound, of.phase].map((column) => blob(column.blob)));
  const [calls, seconds, flops, bytes] = await Promise.all([of.calls, of.seconds, of.flops, of.bytes].map(blob));
  const kernels = [];
  for (let i = firstKernel(points, row); i < points.length && points[i] === row; ++i) {
    kernels.push({
      op: of.op.names[ops[i]],
      family: of.family.names[families[i]],
      phase: of.phase.names[phases[i]],
      bound: of.bound.names[bounds[i]],
      calls: calls[i],
      seconds: seconds[i],
      flops: flops[i],
      bytes: bytes[i]
    });
  }
  return kernels;
}

async function peaksOf(row) {
  const setting = async (name) => (columns.has(name) ? (await values(name))[row] : NaN);
  const format = columns.has('quant.activations') ?
      nameOf(columns.get('quant.activations'), (await values('quant.activations'))[row]) :
      'bf16';
  const peak =
      columns.has(`device.peak.${format}`) ? await setting(`device.peak.${format}`) : await setting('device.peak.bf16');
  return {format, peak, bandwidth: await setting('device.memory_bandwidth')};
}

function roofSeries({peak, bandwidth, format}, dots) {
  if (!(peak > 0) || !(bandwidth > 0)) return [];
  const ridge = peak / bandwidth;
  const [left, right] = [Math.min(...dots.map(([x]) => x), ridge) / 3, Math.max(...dots.map(([x]) => x), ridge) * 3];
  return [{
    name: `roof (${format})`,
    type: 'line',
    symbol: 'none',
    lineStyle: {color: themeColours().faint, width: 2},
    itemStyle: {color: themeColours().faint},
    data: [[left, left * bandwidth], [ridge, peak], [right, peak]],
    tooltip: {show: false}
  }];
}

function logAxis(name, unit, list) {
  const range = niceRange(extentOf(list), true);
  return chartAxis(
      {type: 'log', name, ...range, axisLabel: {...range.axisLabel, formatter: (value) => quantity(value, unit)}});
}

function rooflineOption(drawn, whole, peaks) {
  const dot = (kernel) => [kernel.flops / kernel.bytes, kernel.flops / kernel.seconds];
  const groups = [...groupBy(drawn, (kernel) => kernel.family)];
  const roofs = roofSeries(peaks, drawn.map(dot));
  const {text} = themeColours();
  return {
    grid: {left: 20, right: 30, top: 50, bottom: 10, outerBoundsMode: 'same'},
    legend: {type: 'scroll', top: 0, textStyle: {color: text}},
    xAxis: logAxis(
        'arithmetic intensity [FLOP/B]', '',
        [...drawn.map((kernel) => dot(kernel)[0]), ...roofs.flatMap((roof) => roof.data.map(([x]) => x))]),
    yAxis: logAxis(
        'achieved rate', 'FLOP/s', [...drawn.map((kernel) => dot(kernel)[1]), ...roofs.map((roof) => roof.data[1][1])]),
    series: [
      ...groups.map(([family, list], number) => ({
                      name: family,
                      type: 'scatter',
                      itemStyle: {color: colourOf(number), opacity: 0.8},
                      symbol: symbolOf(number),
                      data: list.map(dot),
                      symbolSize: (_, item) => 6 + 40 * Math.sqrt(list[item.dataIndex].seconds / whole)
                    })),
      ...roofs
    ],
    tooltip: {
      ...baseOption().tooltip,
      trigger: 'item',
      formatter: (item) => {
        const kernel = groups[item.seriesIndex][1][item.dataIndex];
        return lines(
            `${kernel.phase} ${kernel.op} (${kernel.family})`,
            `${quantity(kernel.seconds, 's')}, ${percent(kernel.seconds, whole)} of the time`,
            `bound by ${kernel.bound}`);
      }
    },
  };
}

const NO_KERNELS = 'This page has not the kernels of the chosen points. A report of fewer points (--where) has all.';

// Chosen points whose kernels the page has.
async function pointsWithKernels() {
  const points = await blob(data.kernels.rows.point);
  return (await chosenPoints()).filter((row) => points[firstKernel(points, row)] === row);
}

async function withoutKernels() {
  return {summary: (await chosenPoints()).length ? NO_KERNELS : NO_POINT};
}

async function drawRoofline(panel) {
  const rows = await pointsWithKernels();
  rooflineChoice = {rows, names: await Promise.all(rows.map(rowName))};
  panel.remake();
  if (rows.length === 0) return withoutKernels();
  const row = shownPoint('roof', rows);
  const kernels = await kernelsOf(row);
  const drawn = kernels.filter((kernel) => kernel.flops > 0 && kernel.bytes > 0 && kernel.seconds > 0);
  const whole = kernels.reduce((sum, kernel) => sum + kernel.seconds, 0);
  return {
    option: rooflineOption(drawn, whole, await peaksOf(row)),
    height: 460,
    summary: `Kernels of ${await rowName(row)}: larger marks take more of its time. ${drawn.length} of ${
        kernels.length} kernels do arithmetic and are drawn.`,
    names: ['phase', 'op', 'family', 'bound', 'calls', 'seconds', 'FLOP', 'bytes'],
    rows: () => kernels.map(
        (kernel) =>
            [kernel.phase, kernel.op, kernel.family, kernel.bound, kernel.calls, kernel.seconds, kernel.flops,
             kernel.bytes]),
  };
}

function addRoofline() {
  if (!data.kernels?.rows.rows) return;
  addPanel({
    id: 'roofline',
    title: 'Roofline',
    controls: rooflineControls,
    draw: drawRoofline,
    what: 'Kernels of one chosen point by arithmetic intensity and achieved rate, under the peaks of its device.'
  });
}

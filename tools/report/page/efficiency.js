'use strict';
// A map of kernel families: how much of the time is theirs, and how close to the roofline each device runs them.

// Of more points the map takes every second one, every third one, and so on.
const MOST_MAPPED_POINTS = 2000;

async function deviceOf() {
  const column = columns.get('axis.device') ?? columns.get('device');
  if (!column?.names) return () => 'all';
  const codes = await values(column.name);
  return (row) => nameOf(column, codes[row]);
}

// What the roofline allows for a kernel of a point, in seconds.
async function rooflineOf() {
  const setting = async (name) => (columns.has(name) ? await values(name) : null);
  const bandwidth = await setting('device.memory_bandwidth');
  const format = columns.get('quant.activations');
  const formats = format ? await values('quant.activations') : null;
  const peaks = new Map();
  for (const name of format?.names ?? ['bf16']) peaks.set(name, await setting(`device.peak.${name}`));
  const plain = await setting('device.peak.bf16');
  if (!bandwidth || !plain) return null;
  return (row, flops, bytes) => {
    const of = (format && peaks.get(nameOf(format, formats[row]))) ?? plain;
    const peak = of[row] > 0 ? of[row] : plain[row];
    return Math.max(flops / peak, bytes / bandwidth[row]);
  };
}

// By family and device: seconds taken, and seconds that the roofline allows.
async function familyMap() {
  const of = data.kernels.rows;
  const [points, families, seconds, flops, bytes] =
      await Promise.all([blob(of.point), blob(of.family.blob), blob(of.seconds), blob(of.flops), blob(of.bytes)]);
  const [device, roofline] = [await deviceOf(), await rooflineOf()];
  const rows = filters.rows.filter((row) => points[firstKernel(points, row)] === row);
  const stride = Math.ceil(rows.length / MOST_MAPPED_POINTS) || 1;
  const sums = new Map();
  let mapped = 0;
  for (let place = 0; roofline && place < rows.length; place += stride) {
    const row = rows[place];
    ++mapped;
    for (let i = firstKernel(points, row); i < points.length && points[i] === row; ++i) {
      const family = of.family.names[families[i]];
      if (!sums.has(family)) sums.set(family, new Map());
      const devices = sums.get(family);
      const sum = devices.get(device(row)) ?? {taken: 0, allowed: 0};
      sum.taken += seconds[i];
      sum.allowed += roofline(row, flops[i], bytes[i]);
      devices.set(device(row), sum);
    }
  }
  return {sums, mapped};
}

function efficiencyOption(families, devices) {
  const {text, faint, line} = themeColours();
  const share = (family, device) => {
    const sum = family.devices.get(device);
    return sum && sum.taken > 0 ? 100 * sum.allowed / sum.taken : NaN;
  };
  return {
    grid: {left: 10, right: 30, top: 50, bottom: 10, outerBoundsMode: 'same'},
    legend: {type: 'scroll', top: 0, textStyle: {color: text}, data: devices},
    xAxis: chartAxis({
      type: 'value',
      scale: false,
      min: 0,
      name: '% of the roofline',
      axisLabel: {color: faint, formatter: (value) => `${value}%`}
    }),
    yAxis: {
      type: 'category',
      inverse: true,
      data: families.map((family) => `${family.name} (${percent(family.taken, family.whole)})`),
      axisLabel: {color: text},
      axisLine: {lineStyle: {color: line}}
    },
    series: [
      // From the worst to the best device.
      ...families.map((family, place) => ({
                        type: 'line',
                        name: 'spread',
                        symbol: 'none',
                        silent: true,
                        lineStyle: {color: faint, width: 2},
                        tooltip: {show: false},
                        data: [[family.low, place], [family.high, place]]
                      })),
      ...devices.map((device, number) => ({
                       name: device,
                       type: 'scatter',
                       symbolSize: 12,
                       symbol: symbolOf(number),
                       itemStyle: {color: colourOf(number)},
                       data: families.map((family, place) => [share(family, device), place])
                                 .filter(([value]) => Number.isFinite(value))
                     })),
    ],
    tooltip: {
      ...baseOption().tooltip,
      trigger: 'item',
      formatter: (item) => lines(
          `${families[item.value[1]].name} on ${item.seriesName}`, `${item.value[0].toFixed(1)}% of the roofline`,
          `${percent(families[item.value[1]].taken, families[item.value[1]].whole)} of the time of all these points`)
    },
  };
}

async function drawEfficiency() {
  const {sums, mapped} = await familyMap();
  const whole = [...sums.values()].flatMap((devices) => [...devices.values()]).reduce((sum, one) => sum + one.taken, 0);
  const families = [...sums]
                       .map(([name, devices]) => {
                         const each = [...devices.values()];
                         const ratios = each.filter((one) => one.taken > 0).map((one) => 100 * one.allowed / one.taken);
                         const taken = each.reduce((sum, one) => sum + one.taken, 0);
                         return {name, devices, taken, whole, low: Math.min(...ratios), high: Math.max(...ratios)};
                       })
                       .filter((family) => family.high > 0)  // gaps and the host do no work
                       .sort((a, b) => b.taken - a.taken);
  if (families.length === 0) return {summary: filters.rows.length ? NO_KERNELS : NO_POINT};
  const devices = [...new Set(families.flatMap((family) => [...family.devices.keys()]))];
  const widest = families.reduce((a, b) => (b.high - b.low > a.high - a.low ? b : a));
  return {
    option: efficiencyOption(families, devices),
    height: 130 + 30 * families.length,
    summary: `Kernels of ${grouped(mapped)} points: time that the datasheet's peaks allow over time taken, by family. ${
        devices.length > 1 ?
            `The widest spread between devices has ${widest.name}: ${widest.low.toFixed(0)} to ${
                widest.high.toFixed(0)}%.` :
            ''} Families at the top take most of the time; gaps and the host are no kernels and not shown.`,
    names: ['family', 'share of the time', ...devices.map((device) => `${device} [% of the roofline]`)],
    rows: () => families.map((family) => [family.name, family.taken / whole, ...devices.map((device) => {
                               const sum = family.devices.get(device);
                               return sum?.taken > 0 ? 100 * sum.allowed / sum.taken : '';
                             })]),
  };
}

function addEfficiency() {
  if (!data.kernels?.rows.rows) return;
  addPanel({
    id: 'efficiency',
    title: 'Families by efficiency',
    draw: drawEfficiency,
    what:
        'Where is time left to win: each family of kernels with its share of the time, and how close to the roofline each device runs it.'
  });
}

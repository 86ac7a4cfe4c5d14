'use strict';
// Latencies of the requests of chosen points, where the run kept them.

function latencyControls() {
  return [
    selectBox(
        'Latency', data.latency.names.map((name, i) => [String(i), name]), view.get('latency', '0'),
        (name) => view.set('latency', name)),
    checkBox('log across', view.get('latlog', '1') === '1', (on) => view.set('latlog', on ? '1' : '0')),
  ];
}

async function drawLatency() {
  const points = await blob(data.latency.point);
  const curves = await blob(data.latency.curves);
  const place = new Map(Array.from(points, (row, i) => [row, i]));
  const rows = (await chosenPoints()).filter((row) => place.has(row));
  if (rows.length === 0) return {summary: 'No chosen point has rows of requests.'};
  const kind = Math.min(data.latency.names.length - 1, Number(view.get('latency', '0')) || 0);
  const steps = data.latency.quantiles;
  const curve = (row) => curves.subarray(
      (place.get(row) * data.latency.names.length + kind) * steps,
      (place.get(row) * data.latency.names.length + kind + 1) * steps);
  const names = await Promise.all(rows.map(rowName));
  const log = view.get('latlog', '1') === '1';
  const range = niceRange(extentOf(rows.flatMap((row) => Array.from(curve(row)).filter((value) => value > 0))), log);
  const {text} = themeColours();
  const option = {
    grid: {left: 20, right: 30, top: 50, bottom: 10, outerBoundsMode: 'same'},
    legend: {type: 'scroll', top: 0, textStyle: {color: text, width: 400, overflow: 'truncate'}},
    xAxis: chartAxis({
      type: log ? 'log' : 'value',
      name: data.latency.names[kind],
      ...range,
      axisLabel: {...range.axisLabel, formatter: (value) => quantity(value, 's')}
    }),
    yAxis: chartAxis({
      type: 'value',
      min: 0,
      max: 100,
      name: '% of the requests within',
      axisLabel: {formatter: (value) => `${value}%`}
    }),
    series: rows.map((row, number) => ({
                       name: names[number],
                       type: 'line',
                       symbol: 'none',
                       lineStyle: {width: 2, type: number % 2 ? 'dashed' : 'solid'},
                       itemStyle: {color: colourOf(number)},
                       data: Array.from(curve(row), (value, i) => [value, 100 * i / (steps - 1)])
                                 .filter(([value]) => Number.isFinite(value) && (!log || value > 0))
                     })),
    tooltip: {
      ...baseOption().tooltip,
      trigger: 'axis',
      axisPointer: {type: 'line', axis: 'y'},
      formatter: (items) => lines(...items.map(
          (item) => `${item.seriesName}: ${shortNumber(item.value[1])}% within ${quantity(item.value[0], 's')}`))
    },
  };
  const at = [50, 90, 95, 99, 100];
  return {
    option,
    summary: `How many requests of the measured window had a ${data.latency.names[kind]} within so much, of ${
        chosenText(rows.length)}.`,
    names: ['point', ...at.map((percentile) => `p${percentile} [s]`)],
    rows: () => rows.map(
        (row, i) => [names[i], ...at.map((percentile) => curve(row)[Math.round(percentile / 100 * (steps - 1))])]),
  };
}

function addLatency() {
  if (!data.latency) return;
  addPanel({
    id: 'latency',
    title: 'Latencies',
    controls: latencyControls,
    draw: drawLatency,
    what: 'Distributions over the requests of chosen points.'
  });
}

'use strict';
// How the load of chosen points went on in time, where the run kept it.

const timelineCurve = () => Math.min(data.timeline.curves.length - 1, Number(view.get('curve', '0')) || 0);

function timelineControls() {
  return [selectBox(
      'Show', data.timeline.curves.map((curve, i) => [String(i), curve.title]), String(timelineCurve()),
      (name) => view.set('curve', name))];
}

async function drawTimeline() {
  const [points, ends, time] =
      await Promise.all([data.timeline.point, data.timeline.ends, data.timeline.time].map(blob));
  const place = new Map(Array.from(points, (row, i) => [row, i]));
  const rows = (await chosenPoints()).filter((row) => place.has(row));
  if (rows.length === 0) return {summary: 'No chosen point has a timeline.'};
  const curve = data.timeline.curves[timelineCurve()];
  const numbers = await blob(curve.blob);
  const moments = (row) => {
    const i = place.get(row);
    const begin = i === 0 ? 0 : ends[i - 1];
    return Array.from(time.subarray(begin, ends[i]), (at, k) => [at, numbers[begin + k]]);
  };
  const names = await Promise.all(rows.map(rowName));
  const {text} = themeColours();
  const option = {
    grid: {left: 20, right: 30, top: 50, bottom: 10, outerBoundsMode: 'same'},
    legend: {type: 'scroll', top: 0, textStyle: {color: text, width: 400, overflow: 'truncate'}},
    xAxis: chartAxis(
        {type: 'value', name: 'time since the start', axisLabel: {formatter: (value) => quantity(value, 's')}}),
    yAxis: chartAxis({type: 'value', scale: false, name: curve.title, axisLabel: {formatter: shortNumber}}),
    series: rows.map((row, number) => ({
                       name: names[number],
                       type: 'line',
                       symbol: 'none',
                       lineStyle: {width: 1.5},
                       itemStyle: {color: colourOf(number)},
                       data: moments(row)
                     })),
    tooltip: {
      ...baseOption().tooltip,
      trigger: 'axis',
      formatter: (items) => lines(...items.map(
          (item) => `${item.seriesName}: ${shortNumber(item.value[1])} at ${quantity(item.value[0], 's')}`))
    },
  };
  return {
    option,
    summary: `The curves are: ${curve.title}, all replicas together, of ${chosenText(rows.length)}.`,
    names: ['point', 'time [s]', curve.title],
    rows: () => rows.flatMap((row, i) => moments(row).map(([at, value]) => [names[i], at, value])),
  };
}

function addTimeline() {
  if (!data.timeline) return;
  addPanel({
    id: 'timeline',
    title: 'Timelines',
    controls: timelineControls,
    draw: drawTimeline,
    what: 'Requests, cache and rate over time of chosen points.'
  });
}

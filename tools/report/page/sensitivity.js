'use strict';
// Which axis moves a figure.

const sensitivityOf = () => metricSetting('effect', data.points.first?.y);

function sensitivityControls() {
  return [figureBox('Figure', sensitivityOf(), (name) => view.set('effect', name))];
}

async function drawSensitivity() {
  const metric = sensitivityOf();
  if (!metric || axes.length === 0) return {summary: 'Nothing varies.'};
  const effects = await axisEffects(filters.rows, metric);
  if (effects.length === 0) return {summary: 'No axis has two values among the points that are shown.'};
  const {text, faint, line} = themeColours();
  const option = {
    grid: {left: 10, right: 60, top: 10, bottom: 10, outerBoundsMode: 'same'},
    xAxis: chartAxis({
      type: 'value',
      scale: false,
      name: '% of the spread',  // a longer name would squeeze the bars of a narrow page
      axisLabel: {color: faint}
    }),
    yAxis: {
      type: 'category',
      inverse: true,
      data: effects.map((effect) => effect.axis.label),
      axisLabel: {color: text, width: 160, overflow: 'truncate'},
      axisLine: {lineStyle: {color: line}}
    },
    series: [{
      type: 'bar',
      barMaxWidth: 24,
      data: effects.map((effect) => 100 * effect.share),
      itemStyle: {color: COLOURS[0]},
      label: {show: true, position: 'right', color: text, formatter: (item) => `${Number(item.value.toPrecision(3))}%`}
    }],
    tooltip: {
      ...baseOption().tooltip,
      formatter: (item) => {
        const effect = effects[item.dataIndex];
        return lines(
            effect.axis.label, `explains ${percent(effect.share, 1)}`,
            `largest over smallest: ${shortNumber(effect.ratio)}`, `elasticity: ${shortNumber(effect.elasticity)}`);
      }
    },
  };
  const names = ['axis', 'values', 'explained [%]', 'largest / smallest', 'elasticity', 'best value', 'sets'];
  const rows = effects.map(
      (effect) =>
          [effect.axis.label, effect.values, 100 * effect.share, effect.ratio, effect.elasticity, effect.best,
           effect.sets]);
  return {
    option,
    height: 90 + 36 * effects.length,
    body: [table(names, rows, 'Effects of the axes')],
    summary: `${effects[0].axis.label} moves ${
        columns.get(metric)
            .label} most. Bars: how much of its spread the axis explains alone. Largest over smallest: among points that differ in this axis alone (sets). Elasticity: percent of the figure for one percent of the axis.`,
    names,
    rows: () => rows,
  };
}

function addSensitivity() {
  addPanel({
    id: 'sensitivity',
    title: 'Sensitivity',
    controls: sensitivityControls,
    draw: drawSensitivity,
    what: 'Which axis moves a figure, and how strongly, among the points that are shown.'
  });
}

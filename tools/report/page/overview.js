'use strict';
// What there is: counts by status and reason, what the numbers rest on, facts of the runs.

async function countsOf(name, only) {
  const column = columns.get(name);
  if (!column) return [];
  const codes = await values(name);
  const counts = new Map();
  for (let i = 0; i < rowCount; ++i) {
    if (only && !only(i)) continue;
    if (codes[i] < column.names.length) counts.set(codes[i], (counts.get(codes[i]) ?? 0) + 1);
  }
  return [...counts].sort((a, b) => b[1] - a[1]).map(([code, count]) => [column.names[code], count]);
}

function countTable(title, counts, whole, what) {
  if (counts.length === 0) return null;
  const rows = counts.slice(0, 12).map(
      ([name, count]) =>
          [name, grouped(count), percent(count, whole),
           element('meter', {min: 0, max: whole, value: count, 'aria-hidden': 'true'})]);
  const more = counts.length > 12 ? [element('p', {}, `and ${grouped(counts.length - 12)} more`)] : [];
  return element(
      'div', {class: 'card wide'}, element('h3', {title: what ?? ''}, title),
      table(['', 'points', 'share', ''], rows, title), ...more);
}

function card(value, title) {
  return element('div', {class: 'card'}, element('div', {class: 'big'}, value), element('div', {}, title));
}

function runFacts(run) {
  const facts = [
    ['folder', run.folder], ['rows', grouped(run.rows)], ['positions of the sweep', grouped(Number(run.positions))],
    ['program', `${run.program_version} (${run.program_commit})`], ['model version', run.model_version],
    ['spec', run.spec_hash]
  ];
  return element(
      'details', {class: 'facts'}, element('summary', {}, `Run ${run.folder}`),
      table(['fact', 'value'], facts, 'Facts of the run'),
      element(
          'details', {}, element('summary', {}, 'run.yaml: the whole spec'),
          element('pre', {tabindex: '0'}, run.run_yaml)));
}

function reasonsInFull(reasons, whole) {
  if (reasons.length === 0) return null;
  const rows = reasons.slice(0, 100).map(
      ([name, count]) => [grouped(count), percent(count, whole), name.length < 600 ? name : `${name.slice(0, 600)}…`]);
  return element(
      'details', {class: 'facts'}, element('summary', {}, `The reasons in full (${grouped(reasons.length)})`),
      table(['points', 'share', 'reason'], rows, 'The reasons in full'));
}

function notesInFull() {
  if (data.notes.length === 0) return null;
  return element(
      'div', {class: 'card wide'}, element('h3', {}, 'To know before you rank these points'),
      element('ul', {}, ...data.notes.map((note) => element('li', {}, note))));
}

function sameEverywhere() {
  if (data.points.facts.length === 0) return null;
  const rows =
      data.points.facts.map((column) => [column.label, quantity(column.value, column.unit), column.description]);
  return element(
      'details', {class: 'facts'}, element('summary', {}, 'Figures that are the same wherever there are any'),
      table(['figure', 'value', 'what it is'], rows, 'Figures that are the same wherever there are any'));
}

// How far the figures may be off: the middle of the ends of their 90% intervals, relative to the figure.
async function intervalTable(works) {
  const rows = [];
  for (const low of metrics.filter((column) => /_low(_|$)/.test(column.name))) {
    const [figure, high] = [columns.get(low.name.replace('_low', '')), columns.get(low.name.replace('_low', '_high'))];
    if (figure?.role !== 'metric' || !high) continue;
    const [of, least, most] = [await values(figure.name), await values(low.name), await values(high.name)];
    const used = Array.from(of.keys()).filter(
        (i) => works(i) && of[i] > 0 && Number.isFinite(least[i]) && Number.isFinite(most[i]));
    if (used.length === 0) continue;
    const typical = (ends) => `${Number((100 * (median(used.map((i) => ends[i] / of[i])) - 1)).toPrecision(2))}%`;
    rows.push([figure.label, typical(least), `+${typical(most)}`]);
  }
  if (rows.length === 0) return null;
  return element(
      'div', {class: 'card wide'}, element('h3', {title: 'median over the points'}, 'How far nine in ten may be off'),
      table(['figure', 'low end', 'high end'], rows, 'Typical 90% intervals'));
}

async function drawOverview() {
  const statusColumn = columns.get('status');
  const status = await values('status');
  const ok = statusColumn.names.indexOf('ok');
  const works = (row) => status[row] === ok;
  const counts = new Map(await countsOf('status'));
  const okCount = counts.get('ok') ?? 0;
  const outside = new Map(await countsOf('extrapolated', works)).get('true') ?? 0;
  const reasons = await countsOf('reason_class');
  const left = data.points.asked_for > rowCount ? `; ${grouped(data.points.asked_for)} were thinned out to these` : '';
  const named = await countsOf('reason');
  const working = okCount === 0 ? 'None works.' :
                                  `${grouped(okCount)} ${okCount === 1 ? 'works' : 'work'}; ${
                                      percent(outside, okCount)} of those use some kernel outside what was measured.`;
  return {
    summary: `${grouped(rowCount)} ${rowCount === 1 ? 'point' : 'points'}${left}. ${working}`,
    names: ['status', 'points'],
    rows: () => [...counts].map(([name, count]) => [name, count]),
    body: [
      element(
          'div', {class: 'cards'}, card(grouped(rowCount), rowCount === 1 ? 'point' : 'points'),
          ...[...counts].map(([name, count]) => card(grouped(count), name)),
          ...(okCount > 0 ? [card(percent(outside, okCount), 'of the working ones extrapolate')] : [])),
      element(
          'div', {class: 'cards'}, countTable('Why points do not work', reasons, rowCount - okCount),
          countTable(
              'What the numbers rest on', await countsOf('tier', works), okCount,
              'measured: swept on that device; transfer: formulas fitted on other devices; roofline: physics alone'),
          await intervalTable(works), countTable('What limits the points', await countsOf('bound', works), okCount),
          countTable(
              'How the load fares', (await countsOf('saturation', works)).filter(([name]) => name !== 'none'),
              okCount)),
      notesInFull(), reasonsInFull(named, rowCount - okCount), sameEverywhere(), ...data.points.runs.map(runFacts)
    ].filter(Boolean),
  };
}

function addOverview() {
  addPanel({
    id: 'overview',
    title: 'Overview',
    what: 'How many points there are, how many work, and what the figures rest on. Filters do not change this panel.',
    draw: drawOverview,
    follows: false
  });
}

'use strict';
// Starts the page and keeps it up to date: a change of the view is followed by one redrawing.

function applyTheme(name) {
  document.documentElement.dataset.theme = name;
  document.getElementById('theme').value = name;
}

let pending = false;

// Several changes of one moment are one change.
function scheduleUpdate() {
  if (pending) return;
  pending = true;
  requestAnimationFrame(async () => {
    pending = false;
    const start = performance.now();
    await applyFilters();
    tellCount();
    await redraw();
    document.documentElement.dataset.took = (performance.now() - start).toFixed(1);  // milliseconds
    document.documentElement.dataset.updated = String(Number(document.documentElement.dataset.updated ?? 0) + 1);
  });
}

async function start() {
  const folders = data.points.runs.map((run) => run.folder.split('/').filter(Boolean).pop() ?? run.folder);
  document.title = `${folders.join(', ')} · llmsweep report`;
  document.getElementById('title').textContent = folders.join(', ');
  applyTheme(view.get('theme', 'auto'));
  document.getElementById('theme').addEventListener(
      'change', (event) => view.set('theme', event.target.value === 'auto' ? '' : event.target.value));
  await pointKeys.read();
  await applyFilters();
  await fillFilters();
  tellCount();
  const panelsInOrder = [
    addOverview, addPareto, addBest, addCompare, addParallel, addSlice, addHeat, addBreakdown, addSensitivity,
    addRoofline, addMix, addEfficiency, addLatency, addTimeline
  ];
  for (const add of panelsInOrder) add();
  document.getElementById('loading').remove();
  view.listen((name) => {
    if (name === 'theme' || name === 'all') applyTheme(view.get('theme', 'auto'));
    if (name === 'all') panels.forEach((panel) => panel.remake());
    scheduleUpdate();
  });
  // A link into the page would put its name in the place of the view.
  document.querySelector('.skip').addEventListener('click', (event) => {
    event.preventDefault();
    document.getElementById('main').focus();
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', scheduleUpdate);
  addEventListener('beforeprint', () => panels.forEach((panel) => panel.chart?.resize()));
  if (!live.comeBack()) document.getElementById(view.get('at'))?.scrollIntoView();
  await drawFirst();
  live.start();
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
}

start();

'use strict';
// A panel: heading, controls, chart, the data behind it and a link that keeps the view. Panels that are
// out of sight are drawn when they come into it.

const panels = [];

function themeColours() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(name).trim();
  return {text: of('--text'), faint: of('--faint'), line: of('--line'), back: of('--panel')};
}

// draw(panel) fills a panel: it returns {option, names, rows, summary} of its chart, or {body} without one; `keys` are
// names for a program where `names` are words. A panel that does not follow the filters is drawn once.
function addPanel({id, title, what, controls, draw, height, on = {}, follows = true}) {
  const heading = element('h2', {id: `${id}-title`}, title);
  const panel =
      {id, draw, follows, dirty: true, visible: false, turn: 0, chart: null, height: height ?? 420, on, data: null};
  panel.controls = element('div', {class: 'controls'});
  panel.holder = element(
      'div', {class: 'chart', role: 'img', 'aria-labelledby': `${id}-title`, 'aria-describedby': `${id}-summary`});
  panel.body = element('div', {class: 'body'});
  panel.summary = element('p', {class: 'summary', id: `${id}-summary`});
  panel.table = element(
      'details', {class: 'data', ontoggle: () => showData(panel)}, element('summary', {}, 'Data'),
      element('div', {class: 'rows'}));
  panel.tools = element(
      'div', {class: 'tools'}, element('button', {type: 'button', onclick: () => copyLink(panel)}, 'Copy link'),
      element('button', {type: 'button', onclick: () => saveCsv(panel)}, 'Save CSV'));
  panel.drawn = element('div', {}, panel.summary, panel.holder, panel.body);
  panel.drawn.style.minHeight = `${panel.height}px`;  // until it is drawn
  panel.section = element(
      'section', {id, class: 'panel', 'aria-labelledby': `${id}-title`}, heading, element('p', {class: 'what'}, what),
      panel.controls, panel.drawn, panel.table, panel.tools);
  document.getElementById('main').append(panel.section);
  document.getElementById('nav').append(element(
      'a', {
        href: `#at=${id}`,
        onclick: (event) => {
          event.preventDefault();
          place.inUse = panel.section;
          panel.section.scrollIntoView();
          heading.setAttribute('tabindex', '-1');
          heading.focus({preventScroll: true});
        }
      },
      title));
  panel.remake = () => place.keep(() => remakeControls(panel, controls?.() ?? []));
  panel.remake();
  panels.push(panel);
  return panel;
}

// New controls, with the cursor where it was.
function remakeControls(panel, controls) {
  const among = () => [...panel.controls.querySelectorAll('select, button, input')];
  const at = among().indexOf(document.activeElement);
  panel.controls.replaceChildren(...controls);
  if (at >= 0) among()[at]?.focus({preventScroll: true});
}

// What the reader looks at stays where it is while panels above it are drawn: the panel that was used last, or the one
// that covers a third of the way down the window.
const place = {
  inUse: null,

  held() {
    const covers = (section, from, to) => {
      const {top, bottom} = section.getBoundingClientRect();
      return bottom > from && top < to;
    };
    if (this.inUse && covers(this.inUse, 0, innerHeight)) return this.inUse;
    return panels.map((panel) => panel.section).find((section) => covers(section, innerHeight / 3, innerHeight)) ??
        null;
  },
  keep(change) {
    const section = this.held();
    const before = section?.getBoundingClientRect().top;
    change();
    if (section) scrollBy(0, section.getBoundingClientRect().top - before);
  },
};
for (const kind of ['pointerdown', 'focusin'])
  document.addEventListener(kind, ({target}) => {
    place.inUse = target.closest?.('.panel') ?? place.inUse;
  });

// How far beyond the window a panel counts as in sight.
const MARGIN = 200;

const seen = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    const panel = panels.find((each) => each.section === entry.target);
    panel.visible = entry.isIntersecting;
    if (panel.visible && panel.dirty) drawPanel(panel);
  }
}, {rootMargin: `${MARGIN}px`});

// Panels that are not drawn yet have hardly any height, so all of them would be in sight: they are drawn from the top,
// each where those before it have left it, and watched from then on.
async function drawFirst() {
  for (const panel of panels) {
    const {top, bottom} = panel.section.getBoundingClientRect();
    panel.visible = top < innerHeight + MARGIN && bottom > -MARGIN;
    if (panel.visible) await drawPanel(panel);
  }
  for (const panel of panels) seen.observe(panel.section);
}

async function drawPanel(panel) {
  panel.dirty = false;
  const turn = ++panel.turn;
  const drawn = await panel.draw(panel);
  if (turn !== panel.turn) return;  // a later one has begun
  panel.data = drawn;
  place.keep(() => show(panel, drawn));
}

// A panel keeps the height that it had, so that what is below a click does not come up to it; its own controls may make
// it smaller.
function show(panel, drawn) {
  if (panel.width !== innerWidth || panel.controls.contains(document.activeElement)) panel.drawn.style.minHeight = '';
  panel.width = innerWidth;
  panel.summary.textContent = drawn.summary ?? '';
  panel.body.replaceChildren(...(drawn.body ?? []));
  panel.table.hidden = panel.tools.hidden = !drawn.names;
  panel.holder.hidden = !drawn.option;
  if (drawn.option) showChart(panel, drawn);
  if (panel.table.open) showData(panel);
  panel.drawn.style.minHeight = `${panel.drawn.offsetHeight}px`;
}

function showChart(panel, drawn) {
  const height = `${drawn.height ?? panel.height}px`;
  if (panel.holder.style.height !== height) {
    panel.holder.style.height = height;
    panel.chart?.resize();
  }
  if (!panel.chart) {
    panel.chart = echarts.init(panel.holder, null, {renderer: 'canvas'});
    panel.chart.on('click', (event) => panel.data.click?.(event));
    for (const [name, act] of Object.entries(panel.on)) panel.chart.on(name, act);
    new ResizeObserver(() => panel.chart.resize()).observe(panel.holder);
  }
  panel.chart.setOption({...baseOption(), ...drawn.option}, {notMerge: true});
  drawn.after?.(panel.chart);
}

function baseOption() {
  const {text, line, back} = themeColours();
  return {
    animation: false,
    backgroundColor: 'transparent',
    color: COLOURS,
    textStyle: {color: text, fontFamily: 'system-ui, sans-serif'},
    aria: {enabled: false},  // the panel's own summary and data say more
    tooltip: {confine: true, backgroundColor: back, borderColor: line, textStyle: {color: text}},
  };
}

// An axis of a chart in the page's colours.
function chartAxis(more) {
  const {text, faint, line} = themeColours();
  return {
    nameLocation: 'middle',
    nameGap: 30,
    nameTextStyle: {color: text},
    axisLine: {lineStyle: {color: line}},
    splitLine: {lineStyle: {color: line, opacity: 0.5}},
    scale: true,
    ...more,
    axisLabel: {color: faint, hideOverlap: true, ...more.axisLabel},
  };
}

function valueAxis(metric, log, more = {}) {
  const {unit} = columns.get(metric);
  const axis =
      chartAxis({type: log ? 'log' : 'value', name: metricTitle(metric), nameTruncate: {maxWidth: 330}, ...more});
  axis.axisLabel = {...axis.axisLabel, ...more.axisLabel, formatter: (value) => quantity(value, unit)};
  return axis;
}

// The range of an axis a little wider than its values; on a logarithmic one marks at 1, 2 and 5 of each decade, or
// at decades alone where there are many.
function niceRange([low, high], log) {
  if (!(high >= low)) return {};
  if (!log) {
    const room = (high - low || Math.abs(high) || 1) * 0.04;
    const min = low >= 0 && low - room < 0 ? 0 : low - room;
    return {min, max: high + room, axisLabel: {showMinLabel: min === 0, showMaxLabel: false}};
  }
  const room = Math.max(1.05, (high / low) ** 0.03);
  const [min, max] = [low / room, high * room];
  const steps = max / min > 1e4 ? [1] : max / min > 8 ? [1, 2, 5] : [1, 1.5, 2, 3, 4, 5, 6, 8];
  const marks = [];
  for (let decade = Math.floor(Math.log10(min)); decade <= Math.log10(max); ++decade) {
    for (const step of steps) {
      const mark = Number((step * 10 ** decade).toPrecision(3));
      if (mark >= min && mark <= max) marks.push(mark);
    }
  }
  return {min, max, axisLabel: {customValues: marks}, axisTick: {customValues: marks}};
}

const extentOf = (list) =>
    list.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [Infinity, -Infinity]);

// A tooltip of lines of text; the chart library would take a string for HTML.
function lines(...texts) {
  return element('div', {class: 'tip'}, ...texts.map((text) => element('div', {}, text)));
}

const MOST_SHOWN_ROWS = 200;

function showData(panel) {
  const holder = panel.table.querySelector('.rows');
  if (!panel.table.open || !panel.data?.names) return;
  const rows = panel.data.rows();
  const more = rows.length > MOST_SHOWN_ROWS ?
      [element('p', {}, `The first ${MOST_SHOWN_ROWS} of ${grouped(rows.length)} rows; the CSV file has all.`)] :
      [];
  holder.replaceChildren(
      table(
          panel.data.names, rows.slice(0, MOST_SHOWN_ROWS), `Data of ${panel.section.querySelector('h2').textContent}`,
          panel.data.keys),
      ...more);
}

function saveCsv(panel) {
  const quote = (cell) => {
    const text = cell instanceof Node ? cell.textContent : String(cell ?? '');
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const text =
      [panel.data.keys ?? panel.data.names, ...panel.data.rows()].map((row) => row.map(quote).join(',')).join('\n');
  const link =
      element('a', {href: URL.createObjectURL(new Blob([text], {type: 'text/csv'})), download: `${panel.id}.csv`});
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

async function copyLink(panel) {
  const address = view.link(panel.id);
  history.replaceState(null, '', address);
  try {
    await navigator.clipboard.writeText(address);
    notice('The link is copied');
  } catch {
    notice('The link is in the address bar');
  }
}

// After a change: what is in sight at once, the rest when it is looked at.
async function redraw() {
  for (const panel of panels)
    if (panel.follows || !panel.data) panel.dirty = true;
  await Promise.all(panels.filter((panel) => panel.visible && panel.dirty).map(drawPanel));
}

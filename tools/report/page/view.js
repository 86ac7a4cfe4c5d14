'use strict';
// What is shown, as a link keeps it: everything after '#' in the address. Panels read it with `view.get` and
// change it with `view.set`, which tells those who listen.

const view = {
  settings: new URLSearchParams(location.hash.slice(1)),
  listeners: [],

  get(name, otherwise = '') {
    return this.settings.get(name) ?? otherwise;
  },
  set(name, value) {
    this.note(name, value);
    this.changed(name);
  },
  // Changes the link alone: for what is on the screen already.
  note(name, value) {
    if (value === '')
      this.settings.delete(name);
    else
      this.settings.set(name, value);
    this.keep();
  },
  keep() {
    history.replaceState(history.state, '', `#${this.settings}`);
  },
  changed(name) {
    this.keep();
    for (const listener of this.listeners) listener(name);
  },
  listen(listener) {
    this.listeners.push(listener);
  },
  // A link to one panel with everything as it is now.
  link(panel) {
    const settings = new URLSearchParams(this.settings);
    settings.set('at', panel);
    return `${location.href.split('#')[0]}#${settings}`;
  },

  // Points the reader has chosen to look at side by side, as rows of the page.
  pins() {
    return this.get('pins').split('.').map((key) => pointKeys.row(key)).filter((row) => row !== undefined);
  },
  toggle_pin(row) {
    const pins = this.get('pins').split('.').filter(Boolean);
    const at = pins.indexOf(pointKeys.of(row));
    if (at >= 0)
      pins.splice(at, 1);
    else
      pins.push(pointKeys.of(row));
    if (pins.length > 12) pins.shift();
    this.set('pins', pins.join('.'));
    notice(at >= 0 ? 'Taken out of the comparison' : 'Added to the comparison below');
  },
};

// A metric that a link names and the data has, else another.
function metricSetting(name, otherwise) {
  const wanted = view.get(name, otherwise);
  return columns.get(wanted)?.role === 'metric' ? wanted : otherwise;
}
function axisSetting(name, otherwise) {
  const wanted = view.get(name, otherwise);
  return wanted === 'none' || axes.some((axis) => axis.name === wanted) ? wanted : otherwise;
}

window.addEventListener('hashchange', () => {
  view.settings = new URLSearchParams(location.hash.slice(1));
  view.listeners.forEach((listener) => listener('all'));
});

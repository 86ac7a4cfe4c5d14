'use strict';
// Elements, numbers and colours. Nothing here or elsewhere makes HTML out of text: labels come from files
// of others, and stay text.

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on'))
      made.addEventListener(name.slice(2), value);
    else if (name === 'class')
      made.className = value;
    else if (name in made && typeof value !== 'string')
      made[name] = value;
    else
      made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

function selectBox(label, options, value, onchange) {
  const box = element('select', {onchange: () => onchange(box.value)});
  for (const [name, text] of options) box.append(element('option', {value: name, selected: name === value}, text));
  return element('label', {class: 'control'}, element('span', {}, label), box);
}

function checkBox(label, checked, onchange) {
  const box = element('input', {type: 'checkbox', checked, onchange: () => onchange(box.checked)});
  return element('label', {class: 'control check'}, box, element('span', {}, label));
}

function table(names, rows, caption, keys = []) {
  const numeric = names.map((_, c) => rows.some((row) => typeof row[c] === 'number'));
  const cell = (value, c) => element(
      'td', numeric[c] ? {class: 'number'} : {},
      value instanceof Node         ? value :
          typeof value === 'number' ? shortNumber(value) :
                                      String(value ?? ''));
  return element(
      'div', {class: 'scroll', tabindex: '0', role: 'region', 'aria-label': caption},
      element(
          'table', {}, element('caption', {class: 'hidden'}, caption),
          element(
              'thead', {},
              element(
                  'tr', {},
                  ...names.map(
                      (name, c) => element(
                          'th', {scope: 'col', class: numeric[c] ? 'number' : '', title: keys[c] ?? ''}, name)))),
          element('tbody', {}, ...rows.map((row) => element('tr', {}, ...row.map(cell))))));
}

const PREFIXES =
    [[1e15, 'P'], [1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k'], [1, ''], [1e-3, 'm'], [1e-6, 'µ'], [1e-9, 'n']];

const BINARY_PREFIXES = [[2 ** 40, 'Ti'], [2 ** 30, 'Gi'], [2 ** 20, 'Mi'], [2 ** 10, 'Ki']];

function shortNumber(value) {
  if (!Number.isFinite(value)) return '–';
  const size = Math.abs(value);
  if (size >= 1e6 || (size < 1e-3 && size > 0)) return value.toExponential(2).replace('e+', 'e');
  return String(Number(value.toPrecision(4)));
}

// Scaled units are told with a prefix: 12.3 ms, 4.1 TB/s. Others as they are.
function quantity(value, unit) {
  if (!Number.isFinite(value)) return '–';
  if (!unit) return shortNumber(value);
  if (/^(s|Hz|W|J|B|FLOP|B\/s|FLOP\/s)$/.test(unit) && value !== 0) {
    const limit = unit === 's' ? 1 : Infinity;  // nobody says kiloseconds
    const [scale, prefix] = PREFIXES.find(([scale]) => scale <= limit && Math.abs(value) >= scale * 0.9995) ??
        PREFIXES[PREFIXES.length - 1];
    return `${Number((value / scale).toPrecision(4))} ${prefix}${unit}`;
  }
  return `${shortNumber(value)} ${unit}`;
}

// What a person types for a quantity of this unit: "500 ms", "80 GB", "0.5", "30%". NaN for anything else.
function quantityFrom(text, unit) {
  const found = /^\s*([-+]?(?:[\d,]*\.)?[\d,]*\d\.?(?:e[-+]?\d+)?)\s*(\S*)\s*$/i.exec(text);
  if (!found) return NaN;
  const number = Number(found[1].replaceAll(',', ''));
  const [, , written] = found;
  if (written === '%' && !unit) return number / 100;
  if (!written.endsWith(unit)) return written === '' ? number : NaN;
  const prefix = written.slice(0, written.length - unit.length).replace('u', 'µ');
  return number * ([...PREFIXES, ...BINARY_PREFIXES].find(([, name]) => name === prefix)?.[0] ?? NaN);
}

function grouped(count) {
  return count.toLocaleString('en-US');
}

function percent(part, whole) {
  return whole > 0 ? `${Number((100 * part / whole).toPrecision(3))}%` : '–';
}

// Told apart by colour-blind readers as well (Okabe and Ito, and darker relatives).
const COLOURS = [
  '#0072b2', '#e69f00', '#009e73', '#d55e00', '#cc79a7', '#56b4e9', '#8a7a00', '#7f5ac7', '#5f6b73', '#b03a5b',
  '#00868b', '#9c5221'
];
const SYMBOLS = ['circle', 'triangle', 'rect', 'diamond', 'pin', 'roundRect', 'arrow'];
const colourOf = (number) => COLOURS[number % COLOURS.length];
const symbolOf = (number) => SYMBOLS[number % SYMBOLS.length];

function notice(text) {
  document.getElementById('notice').textContent = text;
  clearTimeout(notice.timer);
  notice.timer = setTimeout(() => {
    document.getElementById('notice').textContent = '';
  }, 4000);
}

'use strict';
// Choosing one of many figures: a button that opens a list in groups, with a field that searches it. The page has one
// such list; every button fills it anew.

const isChosen = (column) => column.role === 'axis' || chosenMetrics.includes(column);

// Labels have words, tooltips the key that files, --where and SQL use.
const columnTip = (column) => `${column.name}: ${column.description}`;

const picker = {
  popup: null,
  choices: [],
  items: [],  // {column, option} that are shown, in their order
  active: 0,
  choose: null,
};

function openPicker(button, choices, value, choose) {
  picker.popup ??= makePicker();
  picker.choices = choices;
  picker.choose = choose;
  picker.search.value = '';
  fillPicker(value);
  picker.popup.showPopover();
  const {left, top, bottom} = button.getBoundingClientRect();
  const {offsetWidth, offsetHeight} = picker.popup;
  const room = innerHeight - bottom > offsetHeight + 12 || top < offsetHeight + 12;
  picker.popup.style.left = `${Math.max(8, Math.min(left, innerWidth - offsetWidth - 12))}px`;
  picker.popup.style.top =
      `${room ? Math.min(bottom + 4, Math.max(8, innerHeight - offsetHeight - 8)) : top - offsetHeight - 4}px`;
  picker.search.focus();
  activate(picker.active);
}

function makePicker() {
  picker.list = element('div', {id: 'picker-list', role: 'listbox', 'aria-label': 'Figures'});
  picker.search = element('input', {
    type: 'text',
    role: 'combobox',
    placeholder: 'search by word or by column',
    'aria-label': 'search the figures',
    'aria-expanded': 'true',
    'aria-controls': 'picker-list',
    oninput: () => fillPicker(null),
    onkeydown: steerPicker
  });
  const popup = element('div', {id: 'picker', popover: 'auto'}, picker.search, picker.list);
  document.body.append(popup);
  return popup;
}

// Figures whose words or key have every word that was typed; where there is none, those whose descriptions do.
function matching(choices, query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const having = (text) => choices.filter((column) => words.every((word) => text(column).toLowerCase().includes(word)));
  const named = having((column) => `${column.label} ${column.name} ${column.group ?? ''}`);
  return named.length ? named : having((column) => column.description);
}

function fillPicker(value) {
  const groups = groupBy(matching(picker.choices, picker.search.value), (column) => column.group ?? 'axes');
  picker.items = [];
  picker.list.replaceChildren(...[...groups].map(([name, list]) => {
    const options = list.map((column) => {
      const option = element(
          'div', {
            role: 'option',
            id: `picker-${picker.items.length}`,
            'data-name': column.name,
            title: column.description,
            onclick: () => pick(column)
          },
          element('span', {}, columnTitle(column)), element('span', {class: 'key'}, column.name));
      picker.items.push({column, option});
      return option;
    });
    return element('div', {role: 'group', 'aria-label': name}, element('div', {class: 'group'}, name), ...options);
  }));
  if (picker.items.length === 0) picker.list.append(element('p', {}, 'No figure has these words.'));
  activate(Math.max(0, picker.items.findIndex(({column}) => column.name === value)));
}

function activate(number) {
  picker.items[picker.active]?.option.removeAttribute('aria-selected');
  picker.active = number;
  const option = picker.items[number]?.option;
  option?.setAttribute('aria-selected', 'true');
  if (number === 0)
    picker.list.scrollTop = 0;  // the name of its group, too
  else
    option?.scrollIntoView({block: 'nearest'});
  picker.search.setAttribute('aria-activedescendant', option?.id ?? '');
}

function steerPicker(event) {
  const last = picker.items.length - 1;
  const steps = {ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10};
  if (event.key in steps) {
    event.preventDefault();
    activate(Math.max(0, Math.min(last, picker.active + steps[event.key])));
  } else if (event.key === 'Enter' && last >= 0) {
    event.preventDefault();
    pick(picker.items[picker.active].column);
  }
}

function pick(column) {
  picker.popup.hidePopover();
  picker.choose(column.name);
}

// A button that shows what is chosen. Without a value it asks to choose.
function columnBox(label, choices, value, onchange) {
  const chosen = (name) => {
    if (value) show(name);
    onchange(name);
  };
  const button = element('button', {
    type: 'button',
    class: 'choice',
    'aria-haspopup': 'listbox',
    onclick: () => openPicker(button, choices, button.dataset.value, chosen)
  });
  const show = (name) => {
    const column = columns.get(name);
    button.dataset.value = name ?? '';
    button.title = column ? columnTip(column) : '';
    button.setAttribute('aria-label', `${label}: ${column?.label ?? 'choose'}`);
    button.replaceChildren(column ? columnTitle(column) : 'choose…');
  };
  show(value);
  return element('div', {class: 'control'}, element('span', {}, label), button);
}

const figureBox = (label, value, onchange) => columnBox(label, chosenMetrics, value, onchange);

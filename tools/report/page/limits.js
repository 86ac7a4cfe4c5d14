'use strict';
// The controls of a limit on a figure: two numbers with their units to type, and a slider over what the figure spans
// among the points that work.

// Two thousand of a figure's values, evenly chosen and sorted, with both ends: they have the quantiles of all, ten to a
// slider's step.
async function sampleOf(column) {
  column.sample ??= sample(await numbersOf(column));
  return column.sample;
}

function sample(numbers) {
  const every = Math.ceil(numbers.length / 2000);
  const some = [];
  let [least, most] = [Infinity, -Infinity];
  for (let i = 0, used = 0; i < numbers.length; ++i) {
    if (!filters.works[i] || !Number.isFinite(numbers[i])) continue;
    least = Math.min(least, numbers[i]);
    most = Math.max(most, numbers[i]);
    if (used++ % every === 0) some.push(numbers[i]);
  }
  return Float64Array.from([least, ...some, most]).sort();
}

// Where a limit is the usual wish: rates at least so high, times at most so long.
const usualSide = (column) => (column.better === 'higher' ? 'low' : 'high');
const SIDE_WORDS = {
  low: 'at least',
  high: 'at most'
};

// A field for one end: "500 ms", "0.5 s" and "0.5" say the same.
function limitField(column, side) {
  const field = element('input', {type: 'text', 'aria-label': `${column.label} ${SIDE_WORDS[side]}`});
  field.addEventListener('change', () => {
    const value = field.value.trim() === '' ? NaN : quantityFrom(field.value, column.unit);
    const wrong = field.value.trim() !== '' && Number.isNaN(value);
    field.setAttribute('aria-invalid', String(wrong));
    if (wrong)
      notice(`'${field.value}' is no number${column.unit ? ` of ${column.unit}` : ''}`);
    else
      setLimits(column.name, ...Object.values({...limitsOf(column.name), [side]: value}));
  });
  return field;
}

async function limitControl(column) {
  const sorted = await sampleOf(column);
  const steps = 200;
  const at = (step) => sorted[Math.round(step / steps * (sorted.length - 1))];
  const side = usualSide(column);
  const fields = {low: limitField(column, 'low'), high: limitField(column, 'high')};
  const slider = element(
      'input',
      {type: 'range', min: '0', max: String(steps), 'aria-label': `${column.label} ${SIDE_WORDS[side]}, slider`});
  slider.addEventListener('input', () => {
    setLimits(column.name, ...Object.values({...limitsOf(column.name), [side]: at(Number(slider.value))}));
  });
  const refresh = () => {
    const limits = limitsOf(column.name);
    if (!limits) return;
    for (const [end, field] of Object.entries(fields)) {
      if (document.activeElement !== field)
        field.value = Number.isFinite(limits[end]) ? quantity(limits[end], column.unit) : '';
    }
    const value = Number.isFinite(limits[side]) ? limits[side] : side === 'low' ? sorted[0] : sorted.at(-1);
    slider.setAttribute('aria-valuetext', quantity(value, column.unit));
    if (document.activeElement === slider) return;
    let step = 0;
    while (step < steps && at(step) < value) ++step;
    slider.value = step;
  };
  refresh();
  view.listen(refresh);
  const spans = `${quantity(sorted[0], column.unit)} … ${quantity(sorted.at(-1), column.unit)}`;
  return element(
      'div', {class: 'limit'},
      element(
          'div', {class: 'row'}, element('strong', {title: columnTip(column)}, column.label),
          element(
              'button', {
                type: 'button',
                title: 'remove this limit',
                'aria-label': `remove the limit on ${column.label}`,
                onclick: () => view.set(`m.${column.name}`, '')
              },
              '×')),
      slider, element('div', {class: 'row ends'}, fields.low, '…', fields.high),
      element('div', {class: 'state'}, `working points: ${spans}`));
}

// A new limit shuts nothing out.
async function addLimit(name) {
  const column = columns.get(name);
  const sorted = await sampleOf(column);
  setLimits(name, ...(usualSide(column) === 'low' ? [sorted[0], NaN] : [NaN, sorted.at(-1)]));
}

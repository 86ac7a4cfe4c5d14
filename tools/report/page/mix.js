'use strict';
// The kernel mix along a request: which families take the time of each phase of one chosen point.

let mixChoice = {rows: [], names: []};

const mixControls = () => [pointBox('mix', mixChoice)];

// Families with their seconds in each phase, those that take most first.
function phaseMix(kernels) {
  const phases = [...new Set(kernels.map((kernel) => kernel.phase))];
  const families = [...groupBy(kernels, (kernel) => kernel.family)].map(
      ([name, list]) => ({
        name,
        seconds: phases.map(
            (phase) => list.filter((kernel) => kernel.phase === phase).reduce((sum, kernel) => sum + kernel.seconds, 0))
      }));
  const total = (family) => family.seconds.reduce((sum, value) => sum + value, 0);
  return {phases, families: families.filter((family) => total(family) > 0).sort((a, b) => total(b) - total(a))};
}

async function drawMix(panel) {
  const rows = await pointsWithKernels();
  mixChoice = {rows, names: await Promise.all(rows.map(rowName))};
  panel.remake();
  if (rows.length === 0) return withoutKernels();
  const row = shownPoint('mix', rows);
  const {phases, families} = phaseMix(await kernelsOf(row));
  const whole = phases.map((_, i) => families.reduce((sum, family) => sum + family.seconds[i], 0));
  const all = whole.reduce((sum, value) => sum + value, 0);
  const longest = whole.indexOf(Math.max(...whole));
  return {
    option: breakdownOption(families, phases, phases.map((phase, i) => `${phase}, ${percent(whole[i], all)}`)),
    height: 120 + 56 * phases.length,
    summary: `Time of ${await rowName(row)} by phase and family of kernels, from the prompt on: ${
        percent(whole[longest], all)} of it is ${phases[longest]}, most of that ${
        families.reduce((best, family) => (family.seconds[longest] > best.seconds[longest] ? family : best)).name}.`,
    names: ['phase', ...families.map((family) => `${family.name} [s]`)],
    rows: () => phases.map((phase, i) => [phase, ...families.map((family) => family.seconds[i])]),
  };
}

function addMix() {
  if (!data.kernels?.rows.rows) return;
  addPanel({
    id: 'mix',
    title: 'Kernel mix along a request',
    controls: mixControls,
    draw: drawMix,
    what:
        'One chosen point phase by phase: reading the prompt, then writing the answer; of training, forwards and backwards.'
  });
}

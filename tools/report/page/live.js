'use strict';
// A page of a run that goes on reads itself again now and then; `llmsweep report --watch` writes it. The view is in the
// address, and what the reader looks at in the state of the tab's history, so both outlive the reading. A finished run's
// page has nothing of this.

const live = {
  SHORTEST: 4,  // seconds between two readings
  LONGEST: 60,  // of a page that nobody writes any more

  going: data.going_on ?? null,

  // Twice as long after each reading that found nothing new, and ten times as long as the page takes at least.
  pause() {
    const before = history.state?.live;
    const same = before && before.done === this.going.done;
    const pause = same ? before.pause * 2 : this.SHORTEST;
    return Math.min(this.LONGEST, Math.max(pause, performance.now() / 100));
  },
  follows: () => view.get('follow', '1') === '1',

  // Nobody's work is interrupted: a list that is open, a field that is being filled in, a pressed button.
  isBusy() {
    return document.hidden || this.pressed || document.querySelector(':popover-open') !== null ||
        document.activeElement?.matches('input[type="text"]');
  },
  readAgain(pause) {
    const section = place.held();
    const at = section && {panel: section.id, top: section.getBoundingClientRect().top};
    history.scrollRestoration = 'manual';  // a browser would scroll before the panels are drawn
    history.replaceState({live: {done: this.going.done, pause, at}}, '');
    location.reload();
  },
  // After a reading: the panel that was looked at is where it was.
  comeBack() {
    const at = history.state?.live?.at;
    const section = at && document.getElementById(at.panel);
    if (!section) return false;
    place.inUse = section;
    scrollBy(0, section.getBoundingClientRect().top - at.top);
    return true;
  },
  start() {
    if (!this.going) {
      history.scrollRestoration = 'auto';
      history.replaceState(null, '');
      return;
    }
    for (const [kind, pressed] of [['pointerdown', true], ['pointerup', false], ['pointercancel', false]])
      document.addEventListener(kind, () => {
        this.pressed = pressed;
      });
    const {done, positions} = this.going;
    document.querySelector('.theme').before(element(
        'span', {id: 'live', role: 'status'}, `${grouped(done)} of ${grouped(positions)} done `,
        checkBox('follow the run', this.follows(), (on) => view.set('follow', on ? '' : '0'))));
    const pause = this.pause();
    let left = pause;
    setInterval(() => {
      if (--left > 0 || this.isBusy() || !this.follows()) return;
      this.readAgain(pause);
    }, 1000);
  },
};

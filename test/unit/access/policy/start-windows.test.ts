import assert from 'node:assert/strict';
import { isInWindow, nextWindowStart, windowsViolations } from '../../../../src/access/policy/start-windows.ts';
import type { StartWindow } from '../../../../src/api/access/access-config.ts';

const at = (text: string): number => Date.parse(text);
const berlin = (days: StartWindow['days'], from: string, to: string): StartWindow => ({
  days,
  from,
  to,
  timeZone: 'Europe/Berlin',
});
const office = berlin(['Mon', 'Tue', 'Wed', 'Thu', 'Fri'], '08:00', '18:00');
const auckland: StartWindow = { days: ['Mon'], from: '00:00', to: '01:00', timeZone: 'Pacific/Auckland' };
const lordHowe: StartWindow = { days: ['Sun'], from: '02:15', to: '04:00', timeZone: 'Australia/Lord_Howe' };
const night = berlin(['Fri'], '22:00', '06:00');

describe('windows for the start of access', () => {
  for (const [window, time, inside] of [
    [office, '2026-11-23T06:59:59Z', false],
    [office, '2026-11-23T07:00:00Z', true],
    [office, '2026-11-23T16:59:59.999Z', true],
    [office, '2026-11-23T17:00:00Z', false],
    [office, '2026-11-22T12:00:00Z', false],
    // Summer time: two hours ahead of UTC.
    [office, '2026-07-06T06:00:00Z', true],
    [office, '2026-07-06T05:59:00Z', false],
    // Past midnight, the day on which the window opened counts.
    [night, '2026-11-27T21:00:00Z', true],
    [night, '2026-11-28T04:59:00Z', true],
    [night, '2026-11-28T05:00:00Z', false],
    [night, '2026-11-28T21:30:00Z', false],
    [berlin(['Sun'], '00:00', '24:00'), '2026-11-22T22:59:00Z', true],
    [berlin(['Sun'], '00:00', '24:00'), '2026-11-22T23:00:00Z', false],
    [auckland, '2026-11-22T11:30:00Z', true],
  ] as const) {
    it(`${window.days} ${window.from}–${window.to} in ${window.timeZone} ${inside ? 'has' : 'does not have'} ${time}`, () => {
      assert.equal(isInWindow([window], at(time)), inside);
    });
  }

  for (const [what, window, time, opens] of [
    ['the same instant, if the window is open', office, '2026-11-23T09:30:30Z', '2026-11-23T09:30:30Z'],
    ['the morning of the same day', office, '2026-11-23T03:00:00Z', '2026-11-23T07:00:00Z'],
    ['Monday, on a Friday evening', office, '2026-11-27T17:00:00Z', '2026-11-30T07:00:00Z'],
    ['a week after the only window', berlin(['Sun'], '10:00', '11:00'), '2026-11-22T10:00:00Z', '2026-11-29T09:00:00Z'],
    ['summer time, the day before', berlin(['Sun'], '08:00', '09:00'), '2026-03-28T12:00:00Z', '2026-03-29T06:00:00Z'],
    ['the end of the skipped hour', berlin(['Sun'], '02:30', '05:00'), '2026-03-28T12:00:00Z', '2026-03-29T01:00:00Z'],
    ['the first of two equal times', berlin(['Sun'], '02:30', '05:00'), '2026-10-24T12:00:00Z', '2026-10-25T00:30:00Z'],
    ['half an hour of Lord Howe', lordHowe, '2026-10-03T12:00:00Z', '2026-10-03T15:30:00Z'],
  ] as const) {
    it(`open next at ${what}`, () => {
      const next = nextWindowStart([window], at(time));
      assert.equal(next === undefined ? 'never' : new Date(next).toISOString(), new Date(opens).toISOString());
    });
  }

  it('open next at the earliest of several', () => {
    const windows = [berlin(['Wed'], '08:00', '09:00'), berlin(['Tue'], '20:00', '21:00')];
    assert.equal(nextWindowStart(windows, at('2026-11-23T12:00:00Z')), at('2026-11-24T19:00:00Z'));
  });

  it('never open in the skipped hour, and open twice in the repeated one', () => {
    const skipped = berlin(['Sun'], '02:00', '03:00');
    assert.equal(nextWindowStart([skipped], at('2026-03-28T12:00:00Z')), at('2026-04-05T00:00:00Z'));
    assert.equal(nextWindowStart([skipped], at('2026-03-22T12:00:00Z')), at('2026-04-05T00:00:00Z'));
    for (const time of ['2026-10-25T00:30:00Z', '2026-10-25T01:30:00Z']) assert.ok(isInWindow([skipped], at(time)));
  });

  it('need a time zone that exists', () => {
    assert.deepEqual(windowsViolations([office, night]), []);
    const [violation] = windowsViolations([office, { ...night, timeZone: 'Europe/Bonn' }]);
    assert.equal(violation?.code, 'InvalidTemplate');
    assert.equal(violation?.field, 'spec.accessConfig.start.windows[1].timeZone');
    assert.match(violation?.message ?? '', /"Europe\/Bonn", which is not a time zone; write an IANA name/);
  });
});

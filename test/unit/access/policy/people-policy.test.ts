import assert from 'node:assert/strict';
import { startViolation } from '../../../../src/access/policy/people-policy.ts';
import type { StartConfig, StartWindow } from '../../../../src/api/access/access-config.ts';

/** A Saturday. */
const askedAtMs = Date.UTC(2026, 10, 21, 9);
const window: StartWindow = {
  days: ['Mon', 'Tue', 'Wed', 'Thu', 'Fri'],
  from: '08:00',
  to: '18:00',
  timeZone: 'Europe/Berlin',
};
const windowsOnly: StartConfig = { windows: [window] };
const weekdays: StartConfig = { maxAhead: '168h', ...windowsOnly };

describe('spec.startAt', () => {
  for (const [title, startAt, config] of [
    ['unset', undefined, undefined],
    ['unset, though there are windows', undefined, weekdays],
    ['at the latest time', '2026-11-22T09:00:00Z', { maxAhead: '24h' }],
    ['now, by a clock that is a minute late', '2026-11-21T08:59:00Z', { maxAhead: '24h' }],
    ['at the latest time, by a clock that is a minute early', '2026-11-22T09:01:00Z', { maxAhead: '24h' }],
    ['when a window opens', '2026-11-23T07:00:00Z', weekdays],
    ['with the offset of a zone', '2026-11-23T08:00:00+01:00', weekdays],
  ] as const) {
    it(`is allowed ${title}`, () => assert.equal(startViolation(startAt, config, askedAtMs), undefined));
  }

  for (const [title, startAt, config, message] of [
    ['without start', '2026-11-22T09:00:00Z', undefined, /is set; the template does not allow it; omit it$/],
    ['without maxAhead', '2026-11-23T08:00:00Z', windowsOnly, /is set; the template does not allow it; omit it/],
    ['in the past', '2026-11-21T08:58:59Z', { maxAhead: '24h' }, /has passed; write a later time/],
    ['too far ahead', '2026-11-22T09:01:01Z', { maxAhead: '24h' }, /24 h ahead, which is until 2026-11-22T09:00/],
    ['outside of the windows', '2026-11-22T12:00:00Z', weekdays, /the next window opens at 2026-11-23T07:00:00Z/],
    ['when a window closes', '2026-11-23T17:00:00Z', weekdays, /opens at 2026-11-24T07:00:00Z/],
    ['as a text that is no time', 'tomorrow', { maxAhead: '24h' }, /is "tomorrow"; write a time/],
  ] as const) {
    it(`is denied ${title}`, () => {
      const violation = startViolation(startAt, config, askedAtMs);
      assert.equal(violation?.code, 'InvalidRequest');
      assert.match(violation?.message ?? '', message);
    });
  }

  it('is judged by the time of the request, however long it waits', () => {
    assert.equal(startViolation('2026-11-21T10:00:00Z', { maxAhead: '1h' }, askedAtMs), undefined);
    assert.ok(startViolation('2026-11-21T10:00:00Z', { maxAhead: '1h' }, askedAtMs + 2 * 3_600_000));
  });
});

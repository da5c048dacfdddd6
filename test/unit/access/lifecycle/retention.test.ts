import assert from 'node:assert/strict';
import { retainedUntilMs } from '../../../../src/access/lifecycle/request-ends.ts';
import type { AccessConfig } from '../../../../src/api/access/template-spec.ts';
import { formatTime } from '../../../../src/kit/clock.ts';
import { createdAtMs, requestView } from '../../../support/request-views.ts';

const hour = 3_600_000;

describe('a request that waits for a start window', () => {
  const window = { days: ['Sun'], from: '02:00', to: '03:00', timeZone: 'Europe/Berlin' } as const;
  const config = { start: { windows: [window] } } as unknown as AccessConfig;
  const waiting = (untilMs: number) =>
    requestView({ approval: { state: 'Scheduled', due: formatTime(untilMs) } } as const);

  it('stays for an hour after the longest usual wait', () => {
    for (const request of [requestView(), waiting(createdAtMs + hour)])
      assert.equal(retainedUntilMs(request, config), createdAtMs + (8 * 24 + 1) * hour);
  });

  it('stays until a later window, because the clocks skip the next one', () => {
    assert.equal(retainedUntilMs(waiting(createdAtMs + 14 * 24 * hour), config), createdAtMs + (14 * 24 + 1) * hour);
  });
});

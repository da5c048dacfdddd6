import assert from 'node:assert/strict';
import { whyText } from '../../../../src/inventory/core/triggers.ts';

describe('the reasons of a run in words', () => {
  for (const [reasons, text] of [
    [['Created'], 'first run for this entry'],
    [['ConfigChanged:/spec/cluster/region', 'Retry'], '/spec/cluster/region changed, retry'],
    [['ConfigChanged'], 'configuration changed'],
    [['InputChanged'], 'inputs, registration, or force annotation changed'],
    [['Forced'], 'force annotation changed'],
    [['InputArrived:/status/outputs/network/vnetName'], 'no longer missing: /status/outputs/network/vnetName'],
    [['Remote:managed/serviceinstances.services'], 'serviceinstances.services changed in the managed cluster'],
    [['Remote:management/shoots.core.gardener.cloud'], 'shoots.core.gardener.cloud changed in this cluster'],
    [['Remote:unwatched'], 'watches of the managed cluster are unhealthy'],
    [['OfALaterRelease:x'], 'OfALaterRelease:x'],
  ] as const) {
    it(`are "${text}" for ${reasons.join(', ')}`, () => assert.equal(whyText(reasons), text));
  }
});

import assert from 'node:assert/strict';
import { MissingExports } from '../../../../src/binding/bundles/missing-exports.ts';
import type { ProviderSession } from '../../../../src/binding/sessions/provider-session.ts';
import type { ExportView } from '../../../../src/binding/stores/views.ts';
import { SimulatedClock } from '../../../support/simulated-clock.ts';

describe('exports that are missing', () => {
  it('are forgotten when too many others have gone since', () => {
    const missing = new MissingExports(new SimulatedClock());
    const session = {} as ProviderSession;
    const gone = (name: string) => {
      const before = { key: `kb-acme/${name}`, name } as ExportView;
      missing.note(session, { type: 'deleted', key: before.key, before });
    };
    gone('kettles');
    gone('pots');
    assert.equal(missing.of(session, 'kettles'), 'seen');
    for (let i = 0; i < 1023; i++) gone(`churn-${i}`);
    assert.equal(missing.of(session, 'kettles'), 'seen', 'asked about since');
    assert.equal(missing.of(session, 'pots'), 0, 'counted anew');
  });
});

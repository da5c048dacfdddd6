import assert from 'node:assert/strict';
import { DeletedExports } from '../../../../src/binding/bundles/deleted-exports.ts';
import type { ProviderSession } from '../../../../src/binding/sessions/provider-session.ts';
import type { ExportView } from '../../../../src/binding/stores/provider-stores.ts';

const session = {} as ProviderSession;
const view = (name: string, deleting = false): ExportView => ({ key: `kb-acme/${name}`, name, deleting }) as ExportView;

describe('exports whose deletion was observed', () => {
  const cases: [what: string, inferred: boolean, deleting: boolean, seen: boolean][] = [
    ['include exports whose deletion the watch showed', false, false, true],
    ['do not include exports that a list lacks', true, false, false],
    ['include exports that a list lacks and that were being deleted', true, true, true],
  ];
  for (const [what, inferred, deleting, seen] of cases) {
    it(what, () => {
      const deleted = new DeletedExports();
      const before = view('kettles', deleting);
      deleted.observe(session, { type: 'deleted', key: before.key, before, ...(inferred ? { inferred } : {}) });
      assert.equal(deleted.has(session, 'kettles'), seen);
      assert.equal(deleted.has({} as ProviderSession, 'kettles'), false);
      deleted.observe(session, { type: 'added', key: before.key, now: view('kettles') });
      assert.equal(deleted.has(session, 'kettles'), false, 'it is back');
    });
  }

  it('are forgotten after too many later deletions', () => {
    const deleted = new DeletedExports();
    const gone = (name: string) => deleted.observe(session, { type: 'deleted', key: name, before: view(name) });
    gone('kettles');
    gone('pots');
    assert.equal(deleted.has(session, 'kettles'), true);
    for (let i = 0; i < 1023; i++) gone(`churn-${i}`);
    assert.equal(deleted.has(session, 'kettles'), true, 'asked about since');
    assert.equal(deleted.has(session, 'pots'), false);
  });
});

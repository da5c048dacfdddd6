import assert from 'node:assert/strict';
import { unbindPolicyAnnotation } from '../../../../src/api/binding/names.ts';
import {
  type BoundCrdState,
  planUnbind,
  type UnbindFacts,
} from '../../../../src/binding/service-binding/unbind-plan.ts';
import type { BindingView } from '../../../../src/binding/stores/consumer-stores.ts';
import { bindingOf } from '../../../support/binding/views.ts';

const binding = (policy?: string): BindingView =>
  bindingOf({ deleting: true, annotations: policy === undefined ? {} : { [unbindPolicyAnnotation]: policy } });

const crd = (name: string, fields: Partial<BoundCrdState> = {}): BoundCrdState => ({
  name,
  exportState: 'exported',
  syncing: true,
  ...fields,
});

describe('the plan of an unbind', () => {
  const waits = (blocked: boolean) => ({ kind: 'wait', blocked });
  const deletes = (release: string[], blocked: boolean) => ({ kind: 'delete', release, blocked });
  const table: [what: string, facts: Partial<UnbindFacts>, step: object, says?: RegExp][] = [
    ['finishes without a provider too', { crds: [], provider: 'noSession' }, { kind: 'finish' }],
    [
      'does not wait for copies with policy Orphan',
      { crds: [], drainSyncersRunning: false, binding: binding('Orphan') },
      { kind: 'finish' },
    ],
    ['waits for the provider', { provider: 'connecting' }, waits(false), /copies of a, b there$/],
    ['reports a provider that fails', { provider: 'unreachable' }, waits(true), /of a, b .*=Orphan$/],
    ['counts the remaining objects', { remaining: 3 }, deletes([], false), /of 3 objects/],
    [
      'releases without a provider',
      { binding: binding('Orphan'), crds: [crd('a', { syncing: false })], provider: 'noSession' },
      deletes(['a'], false),
    ],
    [
      'releases kinds that are no longer exported, and drains the rest',
      { crds: [crd('a'), crd('b', { exportState: 'notExported', syncing: false })] },
      deletes(['b'], false),
    ],
    [
      'reports copies that no syncer can drain',
      { crds: [crd('a'), crd('b', { exportState: 'unverified', syncing: false })] },
      deletes([], true),
      /no valid APIServiceExport kettles with a matching BoundSchema for b,/,
    ],
    ['reports an unknown policy', { binding: binding('keep') }, waits(true), /is "keep"; allowed/],
  ];
  for (const [what, facts, step, says] of table) {
    it(what, () => {
      const planned = planUnbind({
        binding: binding(),
        crds: [crd('a'), crd('b')],
        provider: 'synced',
        remaining: 0,
        drainSyncersRunning: true,
        ...facts,
      });
      const { message = '', ...rest } = { message: undefined, ...planned };
      assert.deepEqual(rest, step);
      if (says) assert.match(message, says);
    });
  }
});

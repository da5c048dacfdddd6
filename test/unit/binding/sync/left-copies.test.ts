import assert from 'node:assert/strict';
import { copyOfAnnotation } from '../../../../src/api/binding/names.ts';
import { type Action, plan, type Situation, type Terms } from '../../../../src/binding/sync/plan.ts';
import { clusterNamespace, copyAnnotations, copyOfKettle, heldKettle, kettles } from './support.ts';

const terms: Terms = {
  clusterNamespace,
  bindingUid: 'b-1',
  provider: kettles,
  owner: undefined,
  statusSubresource: true,
};
const alone: Situation = {
  mode: 'sync',
  key: 'team-a/tea',
  consumer: undefined,
  seenDeleted: undefined,
  place: { kind: 'at', key: 'kb-acme-team-a/tea' },
  copy: copyOfKettle(),
  copyGoing: false,
  copyGone: false,
};
const verbs = (situation: Partial<Situation>, changed: Partial<Terms> = {}): Action['do'][] =>
  plan({ ...alone, ...situation }, { ...terms, ...changed }).map((action) => action.do);
const { [copyOfAnnotation]: _, ...unproved } = copyAnnotations;
const of = (copyOf: string): Partial<Situation> => ({
  copy: copyOfKettle({ metadata: { annotations: { ...unproved, [copyOfAnnotation]: copyOf } } }),
});
const withoutProof: Partial<Situation> = { copy: copyOfKettle({ metadata: { annotations: unproved } }) };
const modes = ['sync', 'drain'] as const;

describe('a copy whose object nobody saw going', () => {
  for (const mode of modes) {
    it(`is deleted when it says that it was made for it through this binding (${mode})`, () => {
      assert.deepEqual(verbs({ mode }), ['deleteCopy']);
    });

    it(`is never deleted for its age, which two clocks tell differently (${mode})`, () => {
      for (const creationTimestamp of ['1999-01-01T00:00:00Z', '2099-01-01T00:00:00Z', undefined]) {
        const metadata = { annotations: unproved, ...(creationTimestamp ? { creationTimestamp } : {}) };
        assert.deepEqual(verbs({ mode, copy: copyOfKettle({ metadata }) }), []);
      }
    });

    it(`stays when another cluster with the same kubeconfig, or an earlier binding, has made it (${mode})`, () => {
      assert.deepEqual(verbs({ mode, ...of('b-2/team-a/tea') }), []);
    });

    it(`stays when it is the clone of a copy under another name (${mode})`, () => {
      assert.deepEqual(verbs({ mode, key: 'team-a/tea2', place: { kind: 'at', key: 'kb-acme-team-a/tea2' } }), []);
      assert.deepEqual(verbs({ mode, key: 'team-b/tea', place: { kind: 'at', key: 'kb-acme-team-b/tea' } }), []);
    });

    it(`stays while it is not known for which binding we work (${mode})`, () => {
      assert.deepEqual(verbs({ mode }, { bindingUid: undefined }), []);
      assert.deepEqual(verbs({ mode, ...of('undefined/team-a/tea') }, { bindingUid: undefined }), []);
    });
  }
});

describe('a copy without proof', () => {
  it('is deleted when its object was seen going', () => {
    assert.deepEqual(verbs({ ...withoutProof, seenDeleted: 'c-1' }), ['deleteCopy']);
    assert.deepEqual(verbs({ ...withoutProof, seenDeleted: 'c-2' }), []);
  });

  it('is deleted with its object', () => {
    const consumer = heldKettle({ metadata: { deletionTimestamp: '2026-11-21T09:00:00Z' } });
    assert.deepEqual(verbs({ ...withoutProof, consumer }), ['deleteCopy']);
  });

  it('is taken over without a write, and gets the proof with the next one', () => {
    assert.deepEqual(verbs({ ...withoutProof, consumer: heldKettle() }), []);
    const [update] = plan({ ...alone, ...withoutProof, consumer: heldKettle({ spec: { litres: 3 } }) }, terms);
    assert.deepEqual(update, {
      do: 'update',
      key: 'kb-acme-team-a/tea',
      patch: {
        metadata: { uid: 'p-1', annotations: { [copyOfAnnotation]: 'b-1/team-a/tea' } },
        spec: { litres: 3 },
      },
    });
  });
});

describe('an object that goes while another binding has its copy', () => {
  const consumer = heldKettle({ metadata: { uid: 'c-9', deletionTimestamp: '2026-11-21T09:00:00Z' } });

  it('is let go, and the copy stays', () => {
    assert.deepEqual(verbs({ consumer, ...of('b-2/team-a/tea') }), ['unmark']);
  });

  it('takes the copy of an earlier object of this binding along', () => {
    assert.deepEqual(verbs({ consumer }), ['update']);
  });
});

import assert from 'node:assert/strict';
import { copyOfAnnotation } from '../../../../src/api/binding/names.ts';
import { type ObjectAction, type ObjectFacts, plan, type SyncContext } from '../../../../src/binding/sync/plan.ts';
import { copyAnnotations, copyOfKettle, deletionTimestamp, heldKettle, noFacts, syncContext } from './support.ts';

const alone: ObjectFacts = { ...noFacts, copy: copyOfKettle() };
const verbs = (facts: Partial<ObjectFacts>, changed: Partial<SyncContext> = {}): ObjectAction['do'][] =>
  plan({ ...alone, ...facts }, { ...syncContext, ...changed }).map((action) => action.do);
const { [copyOfAnnotation]: _, ...unproved } = copyAnnotations;
const of = (copyOf: string): Partial<ObjectFacts> => ({
  copy: copyOfKettle({ metadata: { annotations: { ...unproved, [copyOfAnnotation]: copyOf } } }),
});
const withoutProof: Partial<ObjectFacts> = { copy: copyOfKettle({ metadata: { annotations: unproved } }) };
const at = (key: string): Partial<ObjectFacts> => ({ key, place: { kind: 'at', key: `kb-acme-${key}` } });

describe('a copy after an unobserved deletion of its object', () => {
  const cases: [what: string, facts: Partial<ObjectFacts>, expected: string[], changed?: Partial<SyncContext>][] = [
    ['is deleted if it names this binding and the object', {}, ['deleteCopy']],
    ['stays if another cluster with the same kubeconfig or an earlier binding created it', of('b-2/team-a/tea'), []],
    ['stays if it is the clone of a copy under another name', at('team-a/tea2'), []],
    ['stays if it is the clone of a copy in another namespace', at('team-b/tea'), []],
    ['stays while the uid of the binding is not known', {}, [], { bindingUid: undefined }],
    ['stays if it names an unknown binding', of('undefined/team-a/tea'), [], { bindingUid: undefined }],
  ];
  for (const mode of ['sync', 'drain'] as const) {
    for (const [what, facts, expected, changed] of cases) {
      it(`${what} (${mode})`, () => assert.deepEqual(verbs({ mode, ...facts }, changed), expected));
    }

    it(`is never deleted because of its age, which depends on two clocks (${mode})`, () => {
      for (const creationTimestamp of ['1999-01-01T00:00:00Z', '2099-01-01T00:00:00Z', undefined]) {
        const metadata = { annotations: unproved, ...(creationTimestamp ? { creationTimestamp } : {}) };
        assert.deepEqual(verbs({ mode, copy: copyOfKettle({ metadata }) }), []);
      }
    });
  }
});

describe('a copy without proof', () => {
  it('is deleted if the deletion of its object was observed', () => {
    assert.deepEqual(verbs({ ...withoutProof, deletedConsumerUid: 'c-1' }), ['deleteCopy']);
    assert.deepEqual(verbs({ ...withoutProof, deletedConsumerUid: 'c-2' }), []);
  });

  it('is deleted with its object', () => {
    const consumer = heldKettle({ metadata: { deletionTimestamp } });
    assert.deepEqual(verbs({ ...withoutProof, consumer }), ['deleteCopy']);
  });

  it('is adopted without a write, and gets the proof with the next write', () => {
    assert.deepEqual(verbs({ ...withoutProof, consumer: heldKettle() }), []);
    const [update] = plan({ ...alone, ...withoutProof, consumer: heldKettle({ spec: { litres: 3 } }) }, syncContext);
    assert.deepEqual(update, {
      do: 'update',
      key: 'kb-acme-team-a/tea',
      patch: { metadata: { uid: 'p-1', annotations: { [copyOfAnnotation]: 'b-1/team-a/tea' } }, spec: { litres: 3 } },
    });
  });
});

describe('an object that is being deleted while another binding owns its copy', () => {
  const consumer = heldKettle({ metadata: { uid: 'c-9', deletionTimestamp } });

  it('loses its finalizer, and the copy stays', () => {
    assert.deepEqual(verbs({ consumer, ...of('b-2/team-a/tea') }), ['removeFinalizer']);
  });
});

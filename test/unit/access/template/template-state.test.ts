import assert from 'node:assert/strict';
import { templateState } from '../../../../src/access/admission-reads.ts';
import type { TemplateView } from '../../../../src/access/stores/access-views.ts';
import type { TemplateSpec } from '../../../../src/api/access/kinds.ts';
import type { Condition } from '../../../../src/api/object.ts';
import { condition } from '../../../support/request-views.ts';

const spec = { accessConfig: { allowedGroups: ['devs'] } } as unknown as TemplateSpec;
const template = (conditions: readonly Condition[], ready?: boolean): TemplateView => ({
  key: 'payments/payments-shell',
  uid: 't-1',
  resourceVersion: '5',
  namespace: 'payments',
  name: 'payments-shell',
  generation: 3,
  spec,
  conditions,
  ready,
  createdAtMs: 0,
});
const at = (generation: number): Partial<Condition> => ({ observedGeneration: generation });

describe('the state of a template', () => {
  it('is unobserved for a new template', () => {
    assert.deepEqual(templateState(template([])), {
      found: true,
      uid: 't-1',
      generation: 3,
      spec,
      ready: undefined,
      observedGeneration: undefined,
    });
  });

  it('is observed up to the oldest generation of its conditions', () => {
    const conditions = [
      condition('TemplateDurationsValid', 'True', at(3)),
      condition('TargetRefExists', 'True', at(2)),
    ];
    assert.equal(templateState(template(conditions, true)).observedGeneration, 2);
  });

  it('counts a condition without a generation as never observed', () => {
    const { observedGeneration: _, ...bare } = condition('TargetRefExists', 'True');
    assert.equal(templateState(template([bare, condition('Other', 'True', at(3))])).observedGeneration, 0);
  });

  const valid = ['TemplateDurationsValid', 'TargetRefExists', 'AccessCommandValid', 'AuthorHoldsRights'].map((type) =>
    condition(type, 'True', at(3)),
  );
  const unplannable = condition('AccessPlanValid', 'False', at(3));
  for (const [status, ready] of [
    ['True', true],
    ['False', false],
    ['Unknown', false],
  ] as const) {
    it(`is ${ready ? '' : 'not '}ready, apart from its plan, if the gateway that it needs is available: ${status}`, () => {
      const conditions = [...valid, unplannable, condition('GatewayAvailable', status, at(3))];
      assert.equal(templateState(template(conditions, false)).ready, ready);
    });
  }

  it('needs no gateway without the condition', () => {
    assert.equal(templateState(template([...valid, unplannable], false)).ready, true);
  });

  it('names the first condition that fails', () => {
    const conditions = [
      condition('TemplateDurationsValid', 'True', at(3)),
      condition('TargetRefExists', 'False', { ...at(3), reason: 'NotFound', message: 'Deployment web does not exist' }),
    ];
    assert.deepEqual(templateState(template(conditions, false)).failing, {
      type: 'TargetRefExists',
      reason: 'NotFound',
      message: 'Deployment web does not exist',
    });
  });

  describe('whose plan is not valid', () => {
    const plan = (status: Condition['status'], generation = 3): Condition =>
      condition('AccessPlanValid', status, {
        ...at(generation),
        reason: 'PodIsSelected',
        message: 'Service web selects',
      });

    it('is ready for requests, which are planned anyway, and says why they may be denied', () => {
      const state = templateState(template([...valid, plan('False')], false));
      assert.deepEqual([state.ready, state.failing], [true, undefined]);
      assert.deepEqual(state.unplannable, { code: 'PodIsSelected', message: 'Service web selects' });
    });

    it('is ready for requests, and says nothing, while it is not judged or only an earlier version was', () => {
      for (const stored of [plan('Unknown'), plan('False', 2), plan('True')]) {
        const state = templateState(template([...valid, stored], false));
        assert.deepEqual([state.ready, state.unplannable], [true, undefined]);
      }
    });

    it('is not ready if another condition fails, too', () => {
      const failing = condition('TargetRefExists', 'False', at(3));
      const state = templateState(template([plan('False'), ...valid.slice(2), failing], false));
      assert.deepEqual([state.ready, state.failing?.type], [false, 'TargetRefExists']);
    });
  });
});

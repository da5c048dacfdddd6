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
  authorSignature: undefined,
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
});

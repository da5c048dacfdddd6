import assert from 'node:assert/strict';
import { viewTemplate } from '../../../../src/access/stores/access-views.ts';
import { viewWorkload } from '../../../../src/access/stores/cluster-views.ts';
import { podAccess } from '../../../../src/api/access/pod-access.ts';
import type { KubeObject } from '../../../../src/api/object.ts';
import { deployments } from '../../../../src/api/resources.ts';
import { podTemplateManifest } from '../../../support/access-objects.ts';
import { condition } from '../../../support/request-views.ts';

const metadata = { name: 'payments', namespace: 'payments', uid: 'w-1', resourceVersion: '9', generation: 4 };
const view = (spec: unknown, over: object = {}) =>
  viewWorkload(deployments)({ metadata: { ...metadata, ...over }, spec } as KubeObject);

describe('the view of a workload', () => {
  it('has the kind that list items omit', () => {
    const template = { spec: { containers: [] } };
    const selector = { matchLabels: { app: 'payments' } };
    assert.deepEqual(view({ selector, template, replicas: 3 }), {
      key: 'payments/payments',
      uid: 'w-1',
      resourceVersion: '9',
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      namespace: 'payments',
      name: 'payments',
      selector,
      podTemplate: template,
    });
  });

  for (const spec of [undefined, null, 'x', { selector: [], template: 'x' }]) {
    it(`has neither selector nor pod template in ${JSON.stringify(spec)}`, () => {
      assert.deepEqual([view(spec)?.selector, view(spec)?.podTemplate], [undefined, {}]);
    });
  }

  it('is undefined without an identity', () => assert.equal(view({}, { uid: undefined }), undefined));
});

describe('the view of a template', () => {
  const projectPodTemplate = viewTemplate(podAccess);
  const stored = (status?: object, spec: object = {}): KubeObject => {
    const manifest = podTemplateManifest(spec as Record<string, unknown>);
    return {
      ...manifest,
      metadata: { ...manifest.metadata, uid: 't-1', resourceVersion: '9', generation: 4 },
      ...(status ? { status } : {}),
    } as KubeObject;
  };

  it('has the spec, the generation, and the observed conditions', () => {
    const conditions = [condition('TargetRefExists', 'True')];
    const template = projectPodTemplate(stored({ conditions, ready: true }));
    assert.deepEqual(
      [template?.key, template?.generation, template?.conditions, template?.ready],
      ['payments/payments-shell', 4, conditions, true],
    );
    assert.deepEqual(template?.spec.accessConfig.allowedGroups, ['devs']);
  });

  it('has no observed conditions before the first status', () => {
    assert.deepEqual([projectPodTemplate(stored())?.conditions, projectPodTemplate(stored())?.ready], [[], undefined]);
  });

  it('is undefined for a template that its schema rejects', () => {
    assert.equal(projectPodTemplate(stored(undefined, { accessConfig: { allowedGroups: 'devs' } })), undefined);
  });
});

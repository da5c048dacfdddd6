import assert from 'node:assert/strict';
import { podAccessRequests } from '../../../../src/api/access/pod-access.ts';
import { roles } from '../../../../src/api/resources.ts';
import { ApiError } from '../../../../src/kube/errors.ts';
import { pluck } from '../../../support/pluck.ts';
import { LifecycleStage } from './lifecycle-stage.ts';

const log = { apiGroups: [''], resources: ['pods/log'], verbs: ['get'] };
const forward = { apiGroups: [''], resources: ['pods/portforward'], verbs: ['get', 'create'] };

describe('the rules of a grant', () => {
  let stage: LifecycleStage;
  beforeEach(async () => {
    stage = new LifecycleStage();
    stage.grantable = [log];
    await stage.start();
  });
  afterEach(() => stage.stop());

  const role = (): unknown => stage.cluster.all(roles)[0]?.['rules'];
  const grantedRules = () => stage.status.grant?.rules ?? [];

  it('are those of the template, restricted to its pod, in both the Role and the status', async () => {
    stage.configure({ rules: [log] });
    await stage.asked();
    const pod = [stage.status.podName];
    assert.deepEqual(pluck(grantedRules(), 'resources', 'resourceNames'), [
      [['pods'], pod],
      [['pods/exec'], pod],
      [['pods/log'], pod],
    ]);
    assert.deepEqual(role(), grantedRules());
  });

  it('stay as granted if the template changes before the Role is created', async () => {
    let faults = 1;
    stage.cluster.fault = ({ verb, plural }) => {
      if (verb !== 'create' || plural !== 'roles' || faults-- <= 0) return;
      stage.configure({ rules: [] });
      throw new ApiError(500, 'InternalError', 'not now');
    };
    stage.configure({ rules: [log] });
    stage.ask();
    await stage.clock.advance(10);
    await stage.restart();
    await stage.clock.advance(1000);
    assert.equal(grantedRules().length, 3);
    assert.deepEqual(role(), grantedRules());
  });

  it('for exec are denied if exec is false, although the template is stored with them', async () => {
    const exec = { apiGroups: [''], resources: ['pods/exec'], verbs: ['create'] };
    const accessCommand = 'kubectl logs {{ .Metadata.Name }}';
    stage.configure({ exec: false, rules: [log, exec], accessCommand });
    await stage.asked();
    assert.deepEqual(pluck(stage.lines, 'verdict', 'code'), [['denied', 'InvalidTemplate']]);
  });

  for (const [title, rules, code] of [
    ['that may not be handed out here', [log, forward], 'NotGrantable'],
    ['on something else than pods', [{ ...log, resources: ['secrets'] }], 'InvalidTemplate'],
  ] as const) {
    it(`${title} are denied, although the template is stored with them`, async () => {
      stage.configure({ rules });
      await stage.asked();
      assert.deepEqual(pluck(stage.lines, 'verdict', 'code'), [['denied', code]]);
      assert.ok(stage.cluster.calls.every(({ verb }) => verb !== 'create'));
      assert.equal(stage.cluster.names(podAccessRequests).length, 1);
    });
  }
});

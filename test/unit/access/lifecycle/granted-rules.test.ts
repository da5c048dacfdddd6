import assert from 'node:assert/strict';
import { podAccessRequests, podAccessTemplates } from '../../../../src/api/access/pod-access.ts';
import { roles } from '../../../../src/api/resources.ts';
import { ApiError } from '../../../../src/kube/errors.ts';
import { podTemplateManifest } from '../../../support/access-objects.ts';
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

  const template = (...rules: object[]): void => {
    stage.cluster.put(podAccessTemplates, podTemplateManifest({ accessConfig: { allowedGroups: ['devs'], rules } }));
  };
  const role = (): unknown => {
    const [key = ''] = stage.cluster.names(roles);
    const [namespace = '', name = ''] = key.split('/');
    return stage.cluster.find(roles, { namespace, name })?.['rules'];
  };
  interface Rules {
    readonly podName: string;
    readonly grant: { readonly rules: readonly { readonly resources: string[]; readonly resourceNames: string[] }[] };
  }
  const granted = (): Rules => {
    const { request } = stage;
    assert.ok(request);
    return request.status as Rules;
  };
  const grantedRules = (): Rules['grant']['rules'] => granted().grant.rules;

  it('are those of the template, restricted to its pod, in both the Role and the status', async () => {
    template(log);
    stage.ask();
    await stage.clock.advance(100);
    assert.deepEqual(
      grantedRules().map(({ resources }) => resources[0]),
      ['pods', 'pods/exec', 'pods/log'],
    );
    const { podName } = granted();
    assert.ok(grantedRules().every(({ resourceNames }) => resourceNames.length === 1 && resourceNames[0] === podName));
    assert.deepEqual(role(), grantedRules());
  });

  it('stay as granted if the template changes before the Role is created', async () => {
    let faults = 1;
    stage.cluster.fault = ({ verb, plural }) => {
      if (verb !== 'create' || plural !== 'roles' || faults-- <= 0) return;
      template();
      throw new ApiError(500, 'InternalError', 'not now');
    };
    template(log);
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
    const accessConfig = { allowedGroups: ['devs'], exec: false, rules: [log, exec], accessCommand };
    stage.cluster.put(podAccessTemplates, podTemplateManifest({ accessConfig }));
    stage.ask();
    await stage.clock.advance(100);
    assert.deepEqual(pluck(stage.lines, 'verdict', 'code'), [['denied', 'InvalidTemplate']]);
  });

  for (const [title, rules, code] of [
    ['that may not be handed out here', [log, forward], 'NotGrantable'],
    ['on something else than pods', [{ ...log, resources: ['secrets'] }], 'InvalidTemplate'],
  ] as const) {
    it(`${title} are denied, although the template is stored with them`, async () => {
      template(...rules);
      stage.ask();
      await stage.clock.advance(100);
      assert.deepEqual(pluck(stage.lines, 'verdict', 'code'), [['denied', code]]);
      assert.ok(stage.cluster.calls.every(({ verb }) => verb !== 'create'));
      assert.equal(stage.cluster.names(podAccessRequests).length, 1);
    });
  }
});

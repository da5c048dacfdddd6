import assert from 'node:assert/strict';
import type { Grant } from '../../../../src/api/access/grant.ts';
import { childNameOf } from '../../../../src/api/access/names.ts';
import { roles } from '../../../../src/api/resources.ts';
import { ApiError } from '../../../../src/kube/errors.ts';
import { pluck } from '../../../support/pluck.ts';
import { LifecycleStage, requestName } from './lifecycle-stage.ts';

const log = { apiGroups: [''], resources: ['pods/log'], verbs: ['get'] };

describe('a grant through the gateway', () => {
  let stage: LifecycleStage;
  beforeEach(async () => {
    stage = new LifecycleStage();
    stage.grantable = [log, { apiGroups: [''], resources: ['pods/proxy'], verbs: ['get'] }];
    stage.gatewayIs('True');
    await stage.start();
  });
  afterEach(() => stage.stop());

  /** Asks through a template with this configuration. */
  const askVia = (accessConfig: Readonly<Record<string, unknown>>): Promise<void> => {
    stage.configure(accessConfig);
    return stage.asked();
  };
  const grant = (): Grant => {
    assert.ok(stage.status.grant, JSON.stringify(stage.status));
    return stage.status.grant;
  };
  const role = (): unknown => stage.cluster.all(roles)[0]?.['rules'];
  const owner = () => ({ ...requestName, uid: stage.request?.metadata.uid ?? '' });
  const roleViaGateway = () => [
    { apiGroups: [''], resources: ['pods'], resourceNames: [grant().pod.name], verbs: ['get', 'list', 'watch'] },
    {
      apiGroups: ['gateway.drawbridge.dev'],
      resources: ['grants/proxy'],
      resourceNames: [childNameOf(owner())],
      verbs: ['get', 'create'],
    },
  ];

  it('has a Role for reading the pod and for its own proxy, and nothing else', async () => {
    await askVia({ session: { via: 'Gateway', idleAfter: '15m' }, rules: [log] });
    assert.deepEqual(role(), roleViaGateway());
    assert.deepEqual(grant().session, { via: 'Gateway', idleAfter: '15m' });
    assert.deepEqual(
      grant().rules?.map(({ resources, resourceNames }) => [resources[0], resourceNames]),
      ['pods', 'pods/exec', 'pods/log'].map((resource) => [resource, [grant().pod.name]]),
      'what the gateway passes',
    );
  });

  it('has the recording of its template', async () => {
    const session = { via: 'Gateway', record: 'Required' } as const;
    await askVia({ session });
    assert.deepEqual(grant().session, session);
  });

  for (const [title, config, command] of [
    ['exec', { session: { via: 'Gateway' } }, 'exec'],
    [
      'its context, if the template excludes exec',
      { session: { via: 'Gateway' }, exec: false, rules: [log], accessCommand: 'kubectl logs {{ .Metadata.Name }}' },
      'use',
    ],
  ] as const) {
    it(`has a message with the command for ${title}`, async () => {
      await askVia(config);
      stage.podBecomesReady();
      await stage.pass(2000);
      assert.equal(stage.status.accessMessage, `kubectl drawbridge ${command} debug -n payments`);
    });
  }

  for (const [from, to] of [
    ['Gateway', 'Direct'],
    ['Direct', 'Gateway'],
  ] as const) {
    it(`stays ${from} if the template becomes ${to} before the Role is created`, async () => {
      let faults = 1;
      stage.cluster.fault = ({ verb, plural }) => {
        if (verb !== 'create' || plural !== 'roles' || faults-- <= 0) return;
        stage.configure({ session: { via: to } });
        throw new ApiError(500, 'InternalError', 'not now');
      };
      await askVia({ session: { via: from } });
      await stage.restart();
      await stage.pass(1000);
      assert.equal(grant().session?.via ?? 'Direct', from);
      assert.deepEqual(role(), from === 'Gateway' ? roleViaGateway() : grant().rules);
    });
  }

  it('is absent if sessions are direct, which is the default', async () => {
    await askVia({});
    assert.equal('session' in grant(), false);
    assert.deepEqual(role(), grant().rules);
  });

  for (const [title, config, code] of [
    ['for whole groups', { session: { via: 'Gateway' }, grantTo: 'AllowedGroups' }, 'InvalidTemplate'],
    ['with an idle limit beyond a day', { session: { via: 'Gateway', idleAfter: '48h' } }, 'InvalidTemplate'],
    [
      'with a rule that the gateway does not pass',
      { session: { via: 'Gateway' }, rules: [{ ...log, resources: ['pods/proxy'] }] },
      'InvalidTemplate',
    ],
  ] as const) {
    it(`${title} is denied, although the template was stored without the webhook`, async () => {
      await askVia(config);
      assert.deepEqual(pluck(stage.lines, 'verdict', 'code'), [['denied', code]]);
      assert.ok(stage.cluster.calls.every(({ verb }) => verb !== 'create'));
    });
  }
});

import assert from 'node:assert/strict';
import type { Grant } from '../../../src/api/access/grant.ts';
import { childNameOf } from '../../../src/api/access/names.ts';
import { connectSubresources } from '../../../src/audit/record.ts';
import { accessTemplate } from '../../support/access-manifests.ts';
import {
  conditionOf,
  execRequest,
  type Manifest,
  podRequest,
  type StoredRequest,
} from '../../support/access-requests.ts';
import { AccessStage } from '../../support/access-stage.ts';
import type { Person } from '../../support/person.ts';
import { allWaysIn, enter } from '../../support/pod-entries.ts';
import { accountUser } from '../../support/server-token.ts';

const forwarded = ['exec', 'attach', 'portforward'] as const;
const name = 'v1alpha1.gateway.drawbridge.dev';
/** Without a Service, the API server handles the group itself, and reports it as Available. */
const apiService: Manifest = {
  apiVersion: 'apiregistration.k8s.io/v1',
  kind: 'APIService',
  metadata: { name },
  spec: { group: 'gateway.drawbridge.dev', version: 'v1alpha1', groupPriorityMinimum: 100, versionPriority: 10 },
};
const everyWayIn: Manifest = {
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'ClusterRole',
  metadata: { name: 'every-way-in' },
  rules: [allWaysIn, { apiGroups: [''], resources: ['nodes/proxy', 'services/proxy'], verbs: ['get', 'create'] }],
};

describe('access through the gateway', () => {
  let stage: AccessStage;
  /** A client with the identity of the gateway, which RBAC lets connect to every pod of the cluster. */
  let gateway: Person;
  let ofPod: StoredRequest;
  let ofWorkload: StoredRequest;
  let direct: StoredRequest;

  const template = (kind: string, of: string, accessConfig: object): Manifest =>
    accessTemplate(kind, of, undefined, accessConfig);
  const session = { via: 'Gateway', idleAfter: '15m' };
  const podOf = ({ status }: StoredRequest): string => status?.podName ?? '';
  const grantOf = ({ status }: StoredRequest): Grant => status?.grant as unknown as Grant;

  before(async function () {
    this.timeout(180_000);
    stage = await AccessStage.open();
    await stage.policiesAre('in force');
    gateway = await accountUser(stage.plane, 'drawbridge-gateway');
    await stage.apply(everyWayIn);
    await stage.kubectl(
      'create',
      'clusterrolebinding',
      'every-way-in',
      '--clusterrole=every-way-in',
      `--user=${gateway.name}`,
    );
    await stage.apply(
      template('PodAccessTemplate', 'shell', { session }),
      template('ExecAccessTemplate', 'enter', { session }),
    );
  });
  after(async () => {
    if (!stage) return;
    await stage.kubectl('delete', 'clusterrole,clusterrolebinding', 'every-way-in', '--ignore-not-found');
    await stage.kubectl('delete', 'apiservice', name, '--ignore-not-found');
    stage.ignoreEarlierCalls();
    await stage.close();
  });

  it('is not ready without the APIService of the gateway, and denies requests with the cause', async () => {
    const stored = await stage.templateReady('PodAccessTemplate', 'shell', false);
    assert.equal(conditionOf(stored, 'GatewayAvailable')?.reason, 'GatewayUnavailable');
    const { status, body } = await stage.create(stage.alice, podRequest('early', { templateName: 'shell' }));
    assert.equal(status, 403, JSON.stringify(body));
    assert.match(
      JSON.stringify(body),
      /TemplateNotReady: .*APIService v1alpha1\.gateway\.drawbridge\.dev does not exist/,
    );
  });

  it('is ready while the APIService is Available', async () => {
    await stage.apply(apiService);
    await stage.templateReady('PodAccessTemplate', 'shell');
    await stage.templateReady('ExecAccessTemplate', 'enter');
  });

  it('opens with a Role for the grant’s proxy instead of exec, and says which command to type', async () => {
    ofPod = await stage.createReady(stage.alice, podRequest('dedicated', { templateName: 'shell', duration: '10m' }));
    ofWorkload = await stage.createReady(
      stage.alice,
      execRequest('shared', { templateName: 'enter', duration: '10m' }),
    );
    for (const request of [ofPod, ofWorkload]) {
      const child = childNameOf(request.metadata);
      const { rules } = JSON.parse(await stage.kubectl('get', 'role', child, '-o', 'json')) as { rules: unknown };
      assert.deepEqual(rules, [
        { apiGroups: [''], resourceNames: [podOf(request)], resources: ['pods'], verbs: ['get', 'list', 'watch'] },
        {
          apiGroups: ['gateway.drawbridge.dev'],
          resourceNames: [child],
          resources: ['grants/proxy'],
          verbs: ['get', 'create'],
        },
      ]);
      assert.deepEqual(grantOf(request).session, session);
      assert.equal(
        request.status?.accessMessage,
        `kubectl drawbridge exec ${request.metadata.name} -n ${stage.namespace}`,
      );
    }
  });

  it('lets the requester, and no other user, call the proxy of that grant only', async () => {
    const [own, other] = [ofPod, ofWorkload].map(({ metadata }) => childNameOf(metadata));
    const mayCall = async (who: Person, grant: string, verb: string): Promise<boolean> => {
      const resourceAttributes = {
        namespace: stage.namespace,
        group: 'gateway.drawbridge.dev',
        resource: 'grants',
        subresource: 'proxy',
        name: grant,
        verb,
      };
      const { body } = await who.call('POST', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', {
        apiVersion: 'authorization.k8s.io/v1',
        kind: 'SelfSubjectAccessReview',
        spec: { resourceAttributes },
      });
      return (body as { status: { allowed: boolean } }).status.allowed;
    };
    for (const grant of [own, other]) {
      for (const verb of ['get', 'create']) assert.equal(await mayCall(stage.alice, grant ?? '', verb), true);
      assert.equal(await mayCall(stage.alice, grant ?? '', 'delete'), false);
      assert.equal(await mayCall(stage.carol, grant ?? '', 'get'), false);
    }
    assert.equal(await mayCall(stage.alice, 'another-1a2b3c4d-access', 'get'), false);
    assert.equal(await stage.alice.mayExec(stage.namespace, podOf(ofPod)), false);
    assert.equal(await stage.alice.mayExec(stage.namespace, podOf(ofWorkload)), false);
  });

  for (const way of forwarded) {
    it(`admits the gateway to the pods of its grants by ${way}, and to no other pod`, async () => {
      for (const request of [ofPod, ofWorkload]) {
        const { status, body } = await enter[way](gateway, stage.namespace, podOf(request));
        assert.ok(![403, 500].includes(status), `${status} ${JSON.stringify(body)}`);
      }
      const { body: list } = await stage.plane.call('GET', `/api/v1/namespaces/${stage.namespace}/pods`);
      const names = (list as { items: { metadata: { name: string } }[] }).items.map(({ metadata }) => metadata.name);
      const others = names.filter((pod) => pod !== podOf(ofPod) && pod !== podOf(ofWorkload));
      assert.ok(others.length > 0);
      for (const pod of others) {
        const { status, body } = await enter[way](gateway, stage.namespace, pod);
        assert.equal(status, 403, JSON.stringify(body));
        assert.match(JSON.stringify(body), /NoGatewayGrant/);
      }
    });
  }

  it('admits the gateway to no pod of a direct grant', async () => {
    direct = await stage.createReady(stage.alice, podRequest('direct', { duration: '10m' }));
    assert.equal(await stage.alice.mayExec(stage.namespace, podOf(direct)), true);
    const { status, body } = await enter.exec(gateway, stage.namespace, podOf(direct));
    assert.equal(status, 403);
    assert.match(JSON.stringify(body), /NoGatewayGrant/);
  });

  for (const way of connectSubresources) {
    it(`denies users with standing permissions to enter the access pod directly, by ${way}`, async () => {
      if (way === 'exec') for (const who of [stage.alice, stage.bob]) await stage.allowPodEntry(who.name);
      const own = await enter[way](stage.alice, stage.namespace, podOf(ofPod));
      assert.equal(own.status, 403, JSON.stringify(own.body));
      assert.match(
        JSON.stringify(own.body),
        new RegExp(`UseGateway: .*run kubectl drawbridge exec dedicated -n ${stage.namespace}`),
      );
      const others = await enter[way](stage.bob, stage.namespace, podOf(ofPod));
      assert.equal(others.status, 403);
      assert.match(JSON.stringify(others.body), /NoGrant/);
    });
  }

  it('admits the gateway no longer once the request is revoked', async () => {
    for (const { kind, metadata } of [ofPod, ofWorkload])
      await stage.alice.call('PATCH', stage.urlOf(kind, metadata.name), { spec: { revoked: true } });
    await stage.closed(ofPod);
    await stage.closed(ofWorkload);
    const { status, body } = await enter.exec(gateway, stage.namespace, podOf(ofWorkload));
    assert.equal(status, 403, JSON.stringify(body));
    assert.match(JSON.stringify(body), /NoGatewayGrant/);
  });

  const refused: [string, object, RegExp][] = [
    ['for whole groups', { session: { via: 'Gateway' }, grantTo: 'AllowedGroups' }, /session.via is Gateway/],
    ['with an idle limit for direct sessions', { session: { idleAfter: '15m' } }, /needs via: Gateway/],
    ['with an idle limit below a minute', { session: { via: 'Gateway', idleAfter: '59s' } }, /from 1m to 24h/],
    ['with an idle limit above a day', { session: { via: 'Gateway', idleAfter: '25h' } }, /from 1m to 24h/],
  ];
  for (const [title, accessConfig, message] of refused) {
    it(`is refused by the API server ${title}`, async () => {
      const manifest = template('ExecAccessTemplate', 'odd', accessConfig);
      const { status, body } = await stage.plane.call('POST', stage.urlOf('ExecAccessTemplate'), manifest);
      assert.equal(status, 422, JSON.stringify(body));
      assert.match(JSON.stringify(body), message);
    });
  }

  describe('without the webhooks', () => {
    before(() => stage.removeWebhooksOnly());
    after(async () => {
      for (const namespace of ['kube-system', 'drawbridge-system'])
        await stage.plane.call('DELETE', `/api/v1/namespaces/${namespace}/pods/closed`);
      await stage.restoreWebhooks();
    });

    for (const namespace of ['kube-system', 'drawbridge-system']) {
      for (const way of forwarded) {
        it(`keeps the gateway out of ${namespace}, by ${way}`, async () => {
          const { status, body } = await enter[way](gateway, namespace, await podIn(namespace));
          assert.equal(status, 403, JSON.stringify(body));
          assert.match(JSON.stringify(body), /NamespaceClosed/);
        });
      }
    }

    for (const [title, call] of [
      ['the proxy of a pod', () => enter.proxy(gateway, stage.namespace, podOf(direct))],
      ['an ephemeral container', () => enter.ephemeralcontainers(gateway, stage.namespace, podOf(direct))],
      ['the proxy of a node', () => gateway.call('GET', '/api/v1/nodes/any/proxy/')],
      [
        'the proxy of a Service',
        () => gateway.call('GET', `/api/v1/namespaces/${stage.namespace}/services/any/proxy/`),
      ],
    ] as const) {
      it(`denies the gateway ${title}`, async () => {
        const { status, body } = await call();
        assert.equal(status, 403, JSON.stringify(body));
        assert.match(JSON.stringify(body), /TokenMisused/);
      });
    }

    const podIn = async (namespace: string): Promise<string> => {
      const spec = { containers: [{ name: 'app', image: 'app:1' }] };
      await stage.plane.call('POST', `/api/v1/namespaces/${namespace}/pods`, { metadata: { name: 'closed' }, spec });
      return 'closed';
    };
  });
});

import assert from 'node:assert/strict';
import { request } from 'node:https';
import { text } from 'node:stream/consumers';
import { readIdentity } from '../../../sandbox/layout.ts';
import { type Identity, issue } from '../../../sandbox/pki.ts';
import { gatewayGroup } from '../../../src/api/gateway/names.ts';
import { GatewayStage, type StagedGrant } from '../../support/gateway-stage.ts';

interface Answer {
  readonly status: number;
  readonly body: string;
}

describe('the gateway under attack', () => {
  let stage: GatewayStage;
  let grant: StagedGrant;

  before(async function () {
    this.timeout(180_000);
    stage = await GatewayStage.open();
    grant = await stage.grant();
  });
  after(() => stage?.close());

  describe('by a client that reaches its port', () => {
    let path: string;
    let identities: Readonly<Record<string, Identity | undefined>>;

    before(async () => {
      path = `/apis/${gatewayGroup}/v1alpha1/namespaces/${stage.namespace}/grants/${grant.name}/proxy`;
      const { directory, authority } = stage.plane;
      const frontProxy = { commonName: 'front-proxy-ca', ...(await readIdentity(directory, 'front-proxy-ca')) };
      const [otherName, serving] = [
        issue(frontProxy, { commonName: 'other' }),
        issue(frontProxy, { commonName: 'front-proxy-client', serves: ['localhost'] }),
      ];
      identities = {
        none: undefined,
        user: issue(authority, { commonName: 'front-proxy-client', groups: ['system:masters'] }),
        otherName,
        serving,
        apiServer: await readIdentity(directory, 'front-proxy-client'),
      };
    });

    function call(as: string, target: string, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
      const identity = identities[as];
      return new Promise((resolve, reject) => {
        const sent = request(
          {
            host: '127.0.0.1',
            port: stage.gateway.port,
            path: target,
            agent: false,
            ca: stage.plane.authority.certificate,
            servername: `drawbridge-gateway.${stage.namespace}.svc`,
            headers: { 'x-remote-user': 'alice', ...headers },
            ...(identity ? { cert: identity.certificate, key: identity.key } : {}),
          },
          (answer) => text(answer).then((body) => resolve({ status: answer.statusCode ?? 0, body }), reject),
        );
        sent.on('error', reject);
        sent.end();
      });
    }

    for (const [as, who] of [
      ['none', 'without a certificate'],
      ['user', 'with a certificate of a user that has the name of the front proxy'],
      ['otherName', 'with another name of the authority of the front proxy'],
      ['serving', 'with a certificate of a server of that authority'],
    ] as const) {
      it(`${who} is not heard`, async () => {
        const { status, body } = await call(as, `${path}/api/v1/namespaces/${stage.namespace}/pods/payments`);
        assert.equal(status, 401, body);
        assert.match(body, /only the API server may call the gateway/);
        const upgrade = { connection: 'Upgrade', upgrade: 'websocket' };
        const exec = await call(
          as,
          `${path}/api/v1/namespaces/${stage.namespace}/pods/payments/exec?command=id`,
          upgrade,
        );
        assert.equal(exec.status, 401, exec.body);
      });
    }

    for (const as of ['none', 'user', 'otherName', 'serving', 'apiServer']) {
      it(`is no replica with the certificate "${as}"`, async () => {
        const { status, body } = await call(as, `/peer/${stage.namespace}/0b0f8f2e-7f2a-4a52-8d0a-3f6c1d2e9a10`);
        assert.equal(status, 401);
        assert.match(body, /only its replicas may call this path/);
      });
    }

    it('would be heard only as the API server', async () => {
      const { status, body } = await call('apiServer', `${path}/api/v1/namespaces/${stage.namespace}/pods/payments`);
      assert.equal(status, 200, body);
    });

    for (const [what, headers] of [
      ['another user', { 'x-remote-user': 'bob' }],
      ['no user', { 'x-remote-user': '' }],
      ['a probe of the API server', { 'x-remote-user': 'system:kube-aggregator', 'x-remote-group': 'system:masters' }],
      ['an administrator', { 'x-remote-user': 'admin', 'x-remote-group': 'system:masters' }],
    ] as const) {
      it(`gets nothing for ${what}`, async () => {
        const target = `${path}/api/v1/namespaces/${stage.namespace}/pods/payments`;
        const { status, body } = await call('apiServer', target, headers);
        assert.match(`${status} ${body}`, /^403 .*was given to alice; you are|^401 .*names no user/);
      });
    }
  });

  describe('by a user who calls it through the API server', () => {
    const prefixOf = (name: string) =>
      `/apis/${gatewayGroup}/v1alpha1/namespaces/${stage.namespace}/grants/${name}/proxy`;

    it('and is no subject of the grant is refused, with a line in the journal', async () => {
      const { code, stderr } = await stage.bob.kubectl([...grant.via, 'exec', 'payments', '--', 'id'], {
        reject: false,
      });
      assert.notEqual(code, 0);
      assert.match(stderr, /drawbridge: grant \S+ was given to alice; you are bob; create a request of your own/);
      const [line] = await stage.gateway.audit(({ verdict, who }) => verdict === 'denied' && who.user === 'bob');
      assert.deepEqual([line?.event, line?.['code'], line?.['request']], ['session', 'NoGrant', grant.request]);
    });

    it('and is an administrator is refused, too', async () => {
      const { stderr } = await stage.plane.kubectl([...grant.via, 'exec', 'payments', '--', 'id'], { reject: false });
      assert.match(stderr, /was given to alice/);
    });

    it('cannot name another grant, namespace, or path by encoding', async () => {
      const other = await stage.grant({ over: { subjects: [{ kind: 'User', name: 'bob' }] } });
      const pod = `/api/v1/namespaces/${stage.namespace}/pods/payments`;
      for (const detour of [
        `..%2f..%2f${other.name}/proxy${pod}`,
        `..%252f..%252f${other.name}/proxy${pod}`,
        `/${pod}`,
        `api/v1/namespaces/kube-system/../${stage.namespace}/pods/payments`,
        `api/v1/namespaces/${stage.namespace}/pods/payments%2f..%2fother`,
        'api/v1/namespaces/kube-system/secrets',
        `api/v1/namespaces/${stage.namespace}/pods/payments/ephemeralcontainers`,
        `api/v1/namespaces/${stage.namespace}/pods/payments/proxy/`,
      ]) {
        const { status, body } = await stage.bob.call('GET', `${prefixOf(grant.name)}/${detour}`);
        assert.ok(status === 403 || status === 404, `${detour}: ${status} ${JSON.stringify(body)}`);
      }
    });

    it('gains nothing by headers that name another user', async () => {
      const pods = `${prefixOf(grant.name)}/api/v1/namespaces/${stage.namespace}/pods`;
      const { status, body } = await stage.bob.call('GET', pods, undefined, { 'X-Remote-User': 'alice' });
      assert.equal(status, 403);
      assert.match(JSON.stringify(body), /you are bob/);
    });

    it('cannot choose a protocol that the gateway does not read, and that a recording would miss', async () => {
      const pod = `${prefixOf(grant.name)}/api/v1/namespaces/${stage.namespace}/pods/payments`;
      const answer = await stage.alice.open(`${pod}/exec?command=id&stdout=true`, 'base64.channel.k8s.io');
      assert.equal(answer.status, 400);
      assert.match(
        JSON.stringify(answer.body),
        /subprotocol base64\.channel\.k8s\.io; for exec, the gateway passes v5/,
      );
    });

    it('cannot use a grant without session, which is for direct calls', async () => {
      const direct = await stage.grant({ over: { session: undefined as never } });
      await stage.gatewaySees(direct, /no request has it/);
    });
  });
});

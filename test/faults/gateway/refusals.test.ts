import assert from 'node:assert/strict';
import { Balancer } from '../../../sandbox/chart/balancer.ts';
import { GatewayProcess } from '../../../sandbox/gateway-process.ts';
import { until } from '../../../sandbox/wait.ts';
import { gatewayApiService, grantProxyPath } from '../../../src/api/gateway/names.ts';
import { GatewayStage, type StagedGrant } from '../../support/gateway-stage.ts';
import type { Person } from '../../support/person.ts';

/** How often each stream is refused. */
const times = 100;
const limitPerReplica = 64;
/** What kubectl shows of a port-forward if the second answer is of a replica that would pass it as a WebSocket. */
const honestRepeat = /calls so if its WebSocket was refused: run the command again with -v=4/;

interface Refused {
  readonly what: string;
  /** The code in the journal; empty if the refusal has no line, because the call is that of no open grant. */
  readonly code: string;
  readonly grant: () => Promise<StagedGrant>;
  readonly person?: () => Person;
  /** Below the pods of the namespace. */
  readonly path: string;
  readonly protocol?: string;
  /** What the client may show. */
  readonly shown: RegExp;
  /** Lines in the journal for each refusal. Default 1. */
  readonly lines?: number;
}

describe('two replicas of the gateway that refuse streams', () => {
  let stage: GatewayStage;
  let other: GatewayProcess;
  let balancer: Balancer;

  before(async function () {
    this.timeout(180_000);
    stage = await GatewayStage.open();
    other = await GatewayProcess.start(stage.plane, { namespace: stage.namespace });
    balancer = await Balancer.open(['127.0.0.1']);
    const { port } = balancer;
    // In turn, so the repeat of a refused call goes to the other replica.
    balancer.route('127.0.0.1', [stage.gateway.port, other.port]);
    const service = JSON.stringify({ spec: { ports: [{ name: 'gateway', port }] } });
    const apiService = JSON.stringify({ spec: { service: { port } } });
    const patch = ['patch', '--type=merge', '-p'];
    await stage.plane.kubectl([...patch, service, '-n', stage.namespace, 'service', 'drawbridge-gateway']);
    await stage.plane.kubectl([...patch, apiService, 'apiservice', gatewayApiService]);
    await until('both replicas to be called', async () => (await spread(await stage.grant())) === 2, {
      timeoutMs: 30_000,
    });
  });
  after(async () => {
    await balancer?.close();
    await other?.stop();
    await stage?.close();
  });

  const replicas = (): GatewayProcess[] => [stage.gateway, other];
  const urlOf = ({ name }: StagedGrant, path: string): string =>
    `${grantProxyPath(stage.namespace, name)}/api/v1/namespaces/${stage.namespace}/pods/${path}`;
  const linesOf = async ({ request }: StagedGrant, verdict: string): Promise<unknown[]> => {
    const lines = replicas().map((replica) =>
      replica.audit((line) => line['request'] === request && line.verdict === verdict),
    );
    return (await Promise.all(lines)).flat().map((line) => line['code']);
  };
  /** How many replicas have opened a session of the grant after two calls in turn. */
  const spread = async (grant: StagedGrant): Promise<number> => {
    for (const _ of replicas()) await stage.alice.open(urlOf(grant, 'payments/exec?command=true&stdout=true'));
    const opened = replicas().map((replica) =>
      replica.audit((line) => line['request'] === grant.request && line.verdict === 'opened'),
    );
    return (await Promise.all(opened)).filter((lines) => lines.length > 0).length;
  };
  /** What kubectl shows: the answer to its WebSocket, or if that had an HTTP status, the answer to its repeat by SPDY. */
  const shownTo = async (person: Person, url: string, protocol?: string): Promise<string> => {
    const first = await person.open(url, protocol);
    if (first.status === 101) return String(first.body);
    const second = await person.call('POST', url, undefined, { connection: 'Upgrade', upgrade: 'SPDY/3.1' });
    return JSON.stringify(second.body);
  };
  const withRules = (...rules: [resource: string, verb: string][]): Promise<StagedGrant> =>
    stage.grant({
      over: {
        rules: rules.map(([resource, verb]) => ({
          apiGroups: [''],
          resources: [resource],
          resourceNames: ['payments'] as [string],
          verbs: [verb],
        })),
      },
    });
  const exec = 'payments/exec?command=true&stdout=true';
  const revoked = async (): Promise<StagedGrant> => {
    const grant = await stage.grant();
    await stage.revoke(grant);
    const isRefused = async (): Promise<boolean> => {
      const answers = [await stage.alice.open(urlOf(grant, exec)), await stage.alice.open(urlOf(grant, exec))];
      return answers.every(({ body }) => /access has ended: Revoked/.test(String(body)));
    };
    await until('both replicas to see the revocation', isRefused, { timeoutMs: 30_000 });
    return grant;
  };
  /** A grant with as many open sessions in each replica as it may have. They end with the test. */
  const full = async (): Promise<StagedGrant> => {
    const grant = await stage.grant();
    const cat = urlOf(grant, 'payments/exec?command=cat&stdin=true&stdout=true');
    const fill = async (): Promise<boolean> => {
      const missing = 2 * limitPerReplica - (await linesOf(grant, 'opened')).length;
      for (let i = 0; i < missing; i++) {
        const { socket } = (await stage.alice.stream(cat)).read();
        ends.push(() => socket.destroy());
      }
      return missing === 0;
    };
    await until('both replicas to be full', fill, { timeoutMs: 60_000 });
    return grant;
  };
  const unstorable = async (): Promise<StagedGrant> => {
    const { body } = await stage.plane.probe('/apis/rbac.authorization.k8s.io/v1/clusterroles/gateway');
    const { rules } = body as { rules: { resources: string[] }[] };
    const set = (kept: object[]) =>
      stage.plane.kubectl(['patch', 'clusterrole', 'gateway', '--type=merge', '-p', JSON.stringify({ rules: kept })]);
    const read = { apiGroups: ['access.drawbridge.dev'], resources: ['accesssessions'], verbs: ['list', 'watch'] };
    await set([...rules.filter(({ resources }) => !resources.includes('accesssessions')), read]);
    ends.push(() => set(rules));
    const grant = await stage.grant();
    const isRefused = async (): Promise<boolean> =>
      /AccessSession/.test(String((await stage.alice.open(urlOf(grant, exec))).body));
    await until('the permission to be gone', isRefused, { timeoutMs: 30_000 });
    return stage.grant();
  };

  /** What undoes the preparation of a test. */
  let ends: (() => unknown)[] = [];
  afterEach(async () => {
    for (const end of ends) await end();
    ends = [];
  });

  const cases: Refused[] = [
    {
      what: 'exec without the permission',
      code: 'NotGranted',
      grant: () => withRules(['pods', 'get']),
      path: exec,
      shown: /does not give create on pods\/exec/,
    },
    {
      what: 'attach without the permission',
      code: 'NotGranted',
      grant: () => withRules(['pods', 'get']),
      path: 'payments/attach?stdout=true',
      shown: /does not give create on pods\/attach/,
    },
    {
      what: 'exec into another pod',
      code: 'NotGranted',
      grant: () => stage.grant(),
      path: 'another/exec?command=true',
      shown: /is not part of grant/,
    },
    {
      what: 'exec with a parameter that the gateway does not pass',
      code: 'NotServed',
      grant: () => stage.grant(),
      path: `${exec}&user=root`,
      shown: /the query has \\"user\\"/,
    },
    {
      what: 'exec of a user of another grant',
      code: 'NoGrant',
      grant: () => stage.grant(),
      person: () => stage.bob,
      path: exec,
      shown: /was given to alice; you are bob/,
    },
    {
      what: 'exec after the access was revoked',
      code: '',
      grant: revoked,
      path: exec,
      shown: /access has ended: Revoked/,
      lines: 0,
    },
    {
      what: 'exec beyond the limit of sessions',
      code: 'TooManySessions',
      grant: full,
      path: exec,
      shown: /the grant has 64 open sessions/,
    },
    {
      what: 'exec that must be recorded, where nothing can be',
      code: 'RecorderUnavailable',
      grant: () => stage.grant({ over: { session: { via: 'Gateway', record: 'Required' } } }),
      path: exec,
      shown: /the template requires recordings/,
    },
    {
      what: 'exec whose session cannot be stored',
      code: 'GatewayFailed',
      grant: unstorable,
      path: exec,
      shown: /could not create the AccessSession/,
    },
    {
      what: 'exec of a container that the pod does not have',
      code: '',
      grant: () => stage.grant(),
      path: `${exec}&container=absent`,
      shown: /the API server refused the stream: .*absent/,
      lines: 0,
    },
    {
      what: 'exec by a protocol without channels',
      code: 'WebSocketRequired',
      grant: () => stage.grant(),
      path: exec,
      protocol: 'base64.channel.k8s.io',
      shown: honestRepeat,
    },
    {
      what: 'port-forward without the permission, which kubectl repeats',
      code: 'NotGranted',
      grant: () => withRules(['pods', 'get']),
      path: 'payments/portforward?ports=80',
      protocol: 'SPDY/3.1+portforward.k8s.io',
      shown: /does not give create on pods\/portforward/,
      lines: 2,
    },
  ];
  for (const { what, code, grant, person = () => stage.alice, path, protocol, shown, lines = 1 } of cases) {
    const text = lines === 0 ? 'no line' : `${lines} ${lines === 1 ? 'line' : 'lines'} ${code}`;
    it(`give ${times} times the true reason, and write ${text} each: ${what}`, async function () {
      this.timeout(120_000);
      const refused = await grant();
      const url = urlOf(refused, path);
      const before = await linesOf(refused, 'denied');
      const answers: string[] = [];
      for (let i = 0; i < times; i++) answers.push(await shownTo(person(), url, protocol));
      assert.deepEqual(
        answers.filter((answer) => !shown.test(answer)),
        [],
      );
      const written = (await linesOf(refused, 'denied')).slice(before.length);
      assert.deepEqual(written, Array(times * lines).fill(code));
    });
  }
});

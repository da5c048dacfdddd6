import assert from 'node:assert/strict';
import { createPublicKey, type KeyObject, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { connect } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { freePorts } from '../../../sandbox/ports.ts';
import { ServerProcess } from '../../../sandbox/server-process.ts';
import { until } from '../../../sandbox/wait.ts';
import { deadlineOf, podRequest } from '../../support/access-requests.ts';
import { AccessStage } from '../../support/access-stage.ts';
import { percentile } from '../../support/percentile.ts';
import { sharedPlane } from '../../support/plane.ts';
import { PortAttack } from '../../support/port-attack.ts';
import { SteadyLoad } from '../../support/steady-load.ts';

const rights = fileURLToPath(new URL('../../../certs/own.yaml', import.meta.url));
const namespace = 'drawbridge-system';
const secretUrl = `/api/v1/namespaces/${namespace}/secrets/drawbridge-own-certificate`;
const configurationsUrl = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations';
const flags = (identity: string): string[] => ['--certificates=own', '--leader-elect=true', `--identity=${identity}`];

const mutatingUrl = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations';

const pems = (text: string, what: string): string[] =>
  text.match(new RegExp(`-----BEGIN ${what}-----[\\s\\S]*?-----END ${what}-----`, 'g')) ?? [];
const publicPart = (key: KeyObject): string => key.export({ type: 'spki', format: 'der' }).toString('base64');

interface Configuration {
  readonly metadata: { readonly name: string };
  readonly webhooks: readonly {
    readonly clientConfig: { readonly caBundle?: string; readonly service: { readonly path: string } };
  }[];
}

describe('certificates without cert-manager', () => {
  let stage: AccessStage;
  let other: ServerProcess;
  /** A dry run that passes both webhooks. */
  let dryRun: string;

  before(async function () {
    this.timeout(180_000);
    const plane = await sharedPlane();
    await plane.call('POST', '/api/v1/namespaces', {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: namespace },
    });
    await plane.kubectl(['apply', '-f', rights]);
    await plane.kubectl([
      'delete',
      'lease',
      '-n',
      namespace,
      'drawbridge-access',
      'drawbridge-own-certificate',
      '--ignore-not-found',
    ]);
    await plane.call('DELETE', secretUrl);
    stage = await AccessStage.open({ flags: flags('left') });
    dryRun = `${stage.urlOf('PodAccessRequest')}?dryRun=All`;
    const [port = 0] = await freePorts(1);
    const installation = { ...stage.server.installation, port };
    other = await ServerProcess.start(plane, { installation, flags: flags('right') });
  });

  after(async () => {
    await other?.stop();
    await stage?.close();
    const plane = await sharedPlane();
    await plane.kubectl(['delete', '--ignore-not-found', '-f', rights]);
    await plane.call('DELETE', secretUrl);
  });

  const serving = async (server: ServerProcess): Promise<string> => {
    const socket = connect({ host: '127.0.0.1', port: server.installation.port, rejectUnauthorized: false });
    await once(socket, 'secureConnect');
    const { serialNumber } = socket.getPeerCertificate();
    socket.destroy();
    return serialNumber;
  };

  const clientConfigs = async (): Promise<Configuration['webhooks'][number]['clientConfig'][]> => {
    const lists = [configurationsUrl, mutatingUrl].map(async (url) => {
      const { body } = await stage.plane.probe(`${url}?labelSelector=app.kubernetes.io/name=drawbridge`);
      return (body as { items: Configuration[] }).items.flatMap(({ webhooks }) => webhooks);
    });
    return (await Promise.all(lists)).flat().map(({ clientConfig }) => clientConfig);
  };

  const bundles = async (): Promise<string[]> =>
    (await clientConfigs()).map(({ caBundle = '' }) => Buffer.from(caBundle, 'base64').toString());

  const paths = async (): Promise<string[]> => (await clientConfigs()).map(({ service }) => service.path);

  /** The path at which the API server calls the webhook of a route. */
  const pathOf = async (route: string): Promise<string> => {
    const found = (await paths()).find((path) => path === route || path.startsWith(`${route}/`));
    assert.ok(found, route);
    return found;
  };

  const metricsOf = async (server: ServerProcess): Promise<string> =>
    (await fetch(`http://127.0.0.1:${server.metricsPort}/metrics`)).text();

  const authorities = (bundle: string): number => bundle.split('BEGIN CERTIFICATE').length - 1;

  it('are created by the server, trusted by the API server, and served by every replica', async () => {
    await stage.createReady(stage.alice, podRequest('first'));
    const { body } = await stage.plane.probe(secretUrl);
    const { data } = body as { data: Record<string, string> };
    assert.deepEqual(Object.keys(data).sort(), ['ca.crt', 'tls.crt', 'tls.key']);
    assert.deepEqual([...new Set(await bundles())], [Buffer.from(data['ca.crt'] ?? '', 'base64').toString()]);
    assert.equal(await serving(other), await serving(stage.server));
  });

  it('have a metric for their expiry', async () => {
    const text = await (await fetch(`http://127.0.0.1:${other.metricsPort}/metrics`)).text();
    const [, seconds = ''] = /^drawbridge_certificate_expiry_timestamp_seconds (\S+)$/m.exec(text) ?? [];
    const days = (Number(seconds) - Date.now() / 1000) / 86_400;
    assert.ok(days > 89.9 && days < 90.1, `${days} days`);
  });

  it('are trusted again after an administrator removes a caBundle', async () => {
    const patch = JSON.stringify([{ op: 'remove', path: '/webhooks/0/clientConfig/caBundle' }]);
    const name = 'validatingwebhookconfiguration/drawbridge-podaccessrequests';
    await stage.plane.kubectl(['patch', name, '--type=json', '-p', patch]);
    const whole = async (): Promise<boolean> => (await bundles()).every((bundle) => authorities(bundle) === 1);
    await until('caBundle to be back', whole, { timeoutMs: 30_000, everyMs: 20 });
    // The API server reads configurations from a cache.
    const admits = async (): Promise<boolean> =>
      (await stage.alice.call('POST', dryRun, podRequest('after-wipe'))).status === 201;
    await until('the API server to call the webhook', admits, { timeoutMs: 30_000 });
  });

  it('are rotated under 100 admissions a second without a failed one', async function () {
    this.timeout(90_000);
    const before = await serving(stage.server);
    const load = new SteadyLoad(
      stage.plane,
      { user: 'alice', groups: ['devs'], everyMs: 10, status: 201 },
      (index) => ({
        path: dryRun,
        body: podRequest(`load-${index}`),
      }),
    );
    try {
      await more(load, 50);
      await stage.plane.call('DELETE', secretUrl);
      const both = async (): Promise<boolean> => (await bundles()).every((bundle) => authorities(bundle) === 2);
      await until('both authorities to be trusted', both, { timeoutMs: 20_000, everyMs: 20 });
      assert.equal(await serving(stage.server), before, 'trusted first, then served');
      const switched = async (): Promise<boolean> =>
        (await Promise.all([stage.server, other].map(serving))).every((serial) => serial !== before);
      await until('the new certificate to be served', switched, { timeoutMs: 40_000, everyMs: 100 });
      await more(load, 100);
    } finally {
      const { sent, perSecond, failures } = await load.stop();
      console.error(`      ${sent} requests, ${perSecond}/s, through one rotation; ${failures.length} failed`);
      assert.deepEqual(failures, []);
    }
    assert.equal(await serving(other), await serving(stage.server));
  });

  it('come from authorities whose private keys are stored nowhere', async () => {
    const authoritiesNow = (await bundles()).flatMap((bundle) => pems(bundle, 'CERTIFICATE'));
    const trusted = authoritiesNow.map((pem) => publicPart(new X509Certificate(pem).publicKey));
    assert.ok(new Set(trusted).size >= 2, 'both authorities of the rotation');
    const files = [stage.server, other].flatMap(({ logFile, auditFile }) => [logFile, auditFile]);
    const texts = await Promise.all([...files.map((file) => readFile(file, 'utf8')), everythingStored()]);
    const keys = pems(texts.join('\n'), '(?:EC )?PRIVATE KEY').map((pem) => publicPart(createPublicKey(pem)));
    const { data } = (await stage.plane.probe(secretUrl)).body as { data: Record<string, string> };
    const serving = createPublicKey(Buffer.from(data['tls.key'] ?? '', 'base64'));
    assert.ok(keys.includes(publicPart(serving)), 'the search finds a stored key');
    assert.deepEqual(
      keys.filter((key) => trusted.includes(key)),
      [],
    );
  });

  /** All Secrets (decoded), ConfigMaps, and webhook configurations of the plane. */
  const everythingStored = async (): Promise<string> => {
    const lists = ['/api/v1/secrets', '/api/v1/configmaps', configurationsUrl, mutatingUrl].map(async (url) => {
      const { items } = (await stage.plane.probe(url)).body as { items: { data?: Record<string, string> }[] };
      return items.flatMap((item) => [
        JSON.stringify(item).replaceAll('\\n', '\n'),
        ...Object.values(item.data ?? {}).map((text) => Buffer.from(text, 'base64').toString()),
      ]);
    });
    return (await Promise.all(lists)).flat().join('\n');
  };

  const more = (load: SteadyLoad, count: number): Promise<boolean> => {
    const target = load.sent + count;
    return until(`${count} more requests`, () => Promise.resolve(load.sent >= target), { timeoutMs: 30_000 });
  };

  describe('on the port of the webhooks', () => {
    const attack = new PortAttack();
    afterEach(() => attack.end());

    const forged = (fields: object): string =>
      JSON.stringify({
        apiVersion: 'admission.k8s.io/v1',
        kind: 'AdmissionReview',
        request: { ...forgedRequest, namespace: stage.namespace, ...fields },
      });
    /** Checks that both webhooks answer the API server within its timeout of three seconds. */
    const admits = async (name: string): Promise<void> => {
      const { status, body } = await stage.alice.call('POST', dryRun, podRequest(name));
      assert.equal(status, 201, JSON.stringify(body));
    };
    const timesOf = async (count: number): Promise<number[]> => {
      const times: number[] = [];
      for (let index = 0; index < count; index++) {
        const start = performance.now();
        await admits(`under-attack-${index}`);
        times.push(performance.now() - start);
      }
      return times;
    };
    const print = (what: string, times: readonly number[]): void =>
      console.error(
        `      ${what}: requests took ${Math.round(percentile(times, 0.5))} ms, ${Math.round(percentile(times, 0.99))} ms at p99`,
      );

    it('an attacker with the path cannot fill the log or the metrics with names, groups, and texts', async () => {
      const { server } = stage;
      const port = server.installation.port;
      const path = await pathOf('/watch-v1-pod');
      const [log, metrics] = [await server.log(), await metricsOf(server)];
      const pod = { group: '', version: 'v1' };
      const entry = {
        operation: 'CONNECT',
        subResource: 'exec',
        resource: { ...pod, resource: 'pods' },
        kind: { ...pod, kind: 'PodExecOptions' },
      };
      for (let index = 0; index < 60; index++) {
        const namespace = `n${index}-${'x'.repeat(1_000_000)}`;
        const userInfo = { username: `u${index}${'y'.repeat(1_000_000)}`, groups: [] };
        assert.equal((await attack.post(port, path, forged({ ...entry, namespace, userInfo }), index))?.status, 200);
      }
      const groups = Array.from({ length: 1_001 }, (_, index) => `g${index}`);
      const refusal = await attack.post(
        port,
        await pathOf(routeOfRequests),
        forged({ userInfo: { username: 'm', groups } }),
      );
      assert.match(refusal?.text ?? '', /CallerTooLarge: the caller is in 1001 groups/);
      assert.ok((await server.log()).length - log.length < 100_000, 'the log');
      assert.ok((await metricsOf(server)).length - metrics.length < 20_000, 'the metrics');
      const lines = (await readFile(server.auditFile, 'utf8')).split('\n');
      assert.ok(lines.every((line) => line.length < 16_384));
    });

    it('an attacker with 4,096 connections from 16 addresses does not block the API server', async function () {
      this.timeout(90_000);
      const { port } = stage.server.installation;
      await attack.idle(port, 4_096);
      print('4,096 idle connections', await timesOf(30));
    });

    it('an attacker with 64 unfinished bodies fills at most 64 MiB of memory', async function () {
      this.timeout(90_000);
      const before = await residentMiB(stage.server.pid);
      await attack.unfinished(stage.server.installation.port, await pathOf(routeOfRequests), 64, 4_000_000);
      print('64 unfinished bodies', await timesOf(30));
      const grownMiB = (await residentMiB(stage.server.pid)) - before;
      assert.ok(grownMiB < 160, `${Math.round(grownMiB)} MiB`);
    });

    /** The most expensive reviews within the limit of 4 MiB. */
    const expensiveReviews = (): Readonly<Record<string, string>> => {
      const noted = forged({ object: {} });
      const grouped = forged({ userInfo: { username: 'm', groups: [] } });
      return {
        'with 3.6 MB of text': noted.replace('"object":{}', `"object":{"note":"${'é'.repeat(1_900_000)}"}`),
        'with a million groups': grouped.replace('"groups":[]', `"groups":[${'"",'.repeat(1_000_000)}""]`),
      };
    };

    it('an attacker who sends the most expensive reviews from eight addresses waits behind the API server', async function () {
      this.timeout(90_000);
      const path = await pathOf(routeOfRequests);
      for (const [what, review] of Object.entries(expensiveReviews())) {
        const flood = attack.flood(stage.server.installation.port, path, review, 8);
        try {
          print(`reviews ${what}`, await timesOf(10));
        } finally {
          const answers = await flood.stop();
          console.error(`      ${answers} of them were answered meanwhile`);
        }
      }
    });

    it('an attacker who sends the most expensive reviews does not delay the end of a grant', async function () {
      this.timeout(90_000);
      const since = stage.plane.auditLog.mark();
      const request = await stage.createReady(stage.alice, podRequest('among-dear', { duration: '8s' }));
      const path = await pathOf(routeOfRequests);
      const floods = Object.values(expensiveReviews()).map((review) =>
        attack.flood(stage.server.installation.port, path, review, 8),
      );
      try {
        await stage.closed(request);
      } finally {
        await Promise.all(floods.map((flood) => flood.stop()));
      }
      // Reads both logs, because either replica may be the leader now.
      const shut = stage.plane.auditLog
        .calls({ since, verbs: ['delete'], resources: ['rolebindings'] })
        .find(({ name }) => name === request.status?.podName);
      const lateMs = Date.parse(shut?.time ?? '') - deadlineOf(request);
      console.error(`      it ended ${lateMs} ms late`);
      assert.ok(lateMs < 2_000, `${lateMs} ms late`);
    });

    it('an attacker with connections to the health and metrics ports makes no probe and no scrape fail', async function () {
      this.timeout(60_000);
      const { healthPort, metricsPort } = stage.server;
      await attack.idle(healthPort, 1_024);
      await attack.idle(metricsPort, 1_024);
      for (let probe = 0; probe < 30; probe++) {
        for (const path of ['readyz', 'healthz']) {
          assert.equal((await fetch(`http://127.0.0.1:${healthPort}/${path}`)).status, 200);
        }
      }
      assert.match(await metricsOf(stage.server), /^drawbridge_grants_active/m);
    });
  });

  // Last: it changes state that the earlier tests need.
  describe('after an upgrade', () => {
    it('are answered with --client-ca-file only to callers with a client certificate, such as the API server', async function () {
      this.timeout(60_000);
      const { plane, server } = stage;
      await stage.stop();
      await other.stop();
      const clientCa = `--client-ca-file=${plane.directory}/pki/webhook-caller-ca.crt`;
      await stage.start({ installation: server.installation, flags: [...flags('left'), clientCa] });
      await stage.createReady(stage.alice, podRequest('shown'));
      // The server takes the Lease of the certificate independently, and logs that.
      const leads = async (): Promise<boolean> => /synced controller=certificate/.test(await stage.server.log());
      await until('the server to keep the certificate', leads, { timeoutMs: 30_000 });

      const path = await pathOf(routeOfRequests);
      const stored = [await readFile(stage.server.auditFile, 'utf8'), await stage.server.log()];
      const attack = new PortAttack();
      const review = JSON.stringify({ ...forgedReview, note: 'x'.repeat(3_900_000) });
      const cpuMs = await cpuMsOf(stage.server.pid);
      const answers = await Promise.all(
        Array.from({ length: 16 }, (_, index) => attack.post(stage.server.installation.port, path, review, index)),
      );
      attack.end();
      assert.deepEqual(new Set(answers), new Set([undefined]), 'connections are cut in the handshake');
      const usedMs = (await cpuMsOf(stage.server.pid)) - cpuMs;
      console.error(`      16 calls without a certificate took ${usedMs} ms of processor time`);
      assert.deepEqual([await readFile(stage.server.auditFile, 'utf8'), await stage.server.log()], stored);
    });
  });
});

const routeOfRequests = '/validate-crds-wizardofoz-co-v1alpha1-podaccessrequest';

const forgedRequest = {
  uid: '7f0c1a52-3b77-4d5e-8b52-0d3a2f0e9c11',
  kind: { group: 'crds.wizardofoz.co', version: 'v1alpha1', kind: 'PodAccessRequest' },
  resource: { group: 'crds.wizardofoz.co', version: 'v1alpha1', resource: 'podaccessrequests' },
  name: 'forged',
  operation: 'CREATE',
  userInfo: { username: 'mallory', groups: ['devs'] },
  object: { metadata: { name: 'forged' }, spec: { templateName: 'payments-shell' } },
};

const forgedReview = { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request: forgedRequest };

/** Processor time that a process has used, in ticks of 10 ms. */
async function cpuMsOf(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
  const [user = 0, system = 0] = stat.slice(stat.lastIndexOf(')')).split(' ').slice(12, 14).map(Number);
  return (user + system) * 10;
}

async function residentMiB(pid: number): Promise<number> {
  const [, kibibytes = ''] = /^VmRSS:\s+(\d+) kB$/m.exec(await readFile(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kibibytes) / 1024;
}

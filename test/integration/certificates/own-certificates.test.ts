import assert from 'node:assert/strict';
import { createPublicKey, type KeyObject, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { connect } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { freePorts } from '../../../sandbox/ports.ts';
import { ServerProcess } from '../../../sandbox/server-process.ts';
import { until } from '../../../sandbox/wait.ts';
import { podRequest } from '../../support/access-requests.ts';
import { AccessStage } from '../../support/access-stage.ts';
import { sharedPlane } from '../../support/plane.ts';
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
  readonly webhooks: readonly { readonly clientConfig: { readonly caBundle?: string } }[];
}

describe('certificates without cert-manager', () => {
  let stage: AccessStage;
  let other: ServerProcess;
  /** Both webhooks judge what is created here, and nothing keeps it. */
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
    await plane.kubectl(['delete', 'lease', '-n', namespace, 'drawbridge-access', '--ignore-not-found']);
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

  const bundles = async (): Promise<string[]> => {
    const { body } = await stage.plane.probe(`${configurationsUrl}?labelSelector=app.kubernetes.io/name=drawbridge`);
    return (body as { items: Configuration[] }).items.flatMap(({ webhooks }) =>
      webhooks.map(({ clientConfig }) => Buffer.from(clientConfig.caBundle ?? '', 'base64').toString()),
    );
  };

  const authorities = (bundle: string): number => bundle.split('BEGIN CERTIFICATE').length - 1;

  it('are made by the server, trusted by the API server, and served by every replica', async () => {
    await stage.askUntilReady(stage.alice, podRequest('first'));
    const { body } = await stage.plane.probe(secretUrl);
    const { data } = body as { data: Record<string, string> };
    assert.deepEqual(Object.keys(data).sort(), ['ca.crt', 'tls.crt', 'tls.key']);
    assert.deepEqual([...new Set(await bundles())], [Buffer.from(data['ca.crt'] ?? '', 'base64').toString()]);
    assert.equal(await serving(other), await serving(stage.server));
  });

  it('are told of by a metric: when they end', async () => {
    const text = await (await fetch(`http://127.0.0.1:${other.metricsPort}/metrics`)).text();
    const [, seconds = ''] = /^drawbridge_certificate_expiry_timestamp_seconds (\S+)$/m.exec(text) ?? [];
    const days = (Number(seconds) - Date.now() / 1000) / 86_400;
    assert.ok(days > 89.9 && days < 90.1, `${days} days`);
  });

  it('are trusted again when somebody wipes a caBundle', async () => {
    const patch = JSON.stringify([{ op: 'remove', path: '/webhooks/0/clientConfig/caBundle' }]);
    const name = 'validatingwebhookconfiguration/drawbridge-podaccessrequests';
    await stage.plane.kubectl(['patch', name, '--type=json', '-p', patch]);
    const whole = async (): Promise<boolean> => (await bundles()).every((bundle) => authorities(bundle) === 1);
    await until('caBundle to be back', whole, { timeoutMs: 30_000, everyMs: 20 });
    const { status } = await stage.alice.call('POST', dryRun, podRequest('after-wipe'));
    assert.equal(status, 201);
  });

  it('are rotated under 100 admissions a second without losing one', async function () {
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
    assert.ok(keys.includes(publicPart(serving)), 'a key that is stored is found');
    assert.deepEqual(
      keys.filter((key) => trusted.includes(key)),
      [],
    );
  });

  /** Secrets in clear, ConfigMaps and webhook configurations of the whole plane. */
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
});

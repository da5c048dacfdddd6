import assert from 'node:assert/strict';
import { until } from '../../../sandbox/wait.ts';
import {
  accountName,
  clusterInventories,
  kubeconfigSecretName,
  reconcileRuns,
  runName,
} from '../../../src/api/inventory/names.ts';
import { secrets, serviceAccounts } from '../../../src/api/resources.ts';
import { credentialIdOf, tokenReader } from '../../../src/inventory/accounts/tokens.ts';
import type { Entry } from '../../../src/inventory/entry.ts';
import type { IssuedToken } from '../../../src/inventory/ports.ts';
import { runObject } from '../../../src/inventory/stores/run-object.ts';
import { own } from '../../../src/kit/json-value.ts';
import type { Client } from '../../../src/kube/client.ts';
import { InventoryStage } from '../../support/inventory/stage.ts';
import { codeOf, WriteAuthorizationStage } from '../../support/inventory/write-authorization-stage.ts';
import { testNamespace } from '../../support/plane.ts';

const network = { name: 'network', kubeconfig: 'none' } as const;
const eventing = { name: 'eventing', kubeconfig: 'read' } as const;
const kubeconfig = { name: 'kubeconfig', kubeconfig: 'produce' } as const;
const hour = 3_600_000;
const { signal } = new AbortController();

describe('the token of a run', function () {
  this.timeout(120_000);
  let stage: WriteAuthorizationStage;
  let entry: Entry;
  let other: Entry;
  let live: IssuedToken;
  let ofOther: IssuedToken;

  before(async () => {
    stage = await WriteAuthorizationStage.open();
    await stage.register('network');
    await stage.register('eventing', { kubeconfig: 'read' });
    await stage.register('kubeconfig');
    entry = await stage.entry('rt-1');
    other = await stage.entry('rt-2');
    live = await stage.token(entry, network);
    ofOther = await stage.token(other, network);
  });
  after(() => stage?.close());

  const patch = (ref: Entry['ref'], status: object) => (client: Client) =>
    client.mergePatch(clusterInventories, ref, { status }, { subresource: 'status' });
  const write = (ref: Entry['ref'], value = 'v') => patch(ref, { outputs: { network: { vnetName: value } } });
  const running = (token: IssuedToken, more: object = {}) =>
    stage.record(entry, 'network', { credentialId: token.id, ...more });

  it('is subject to write authorization before any run, which a dry run proves', async () => {
    const proof = stage.proof(entry);
    await proof.prove(AbortSignal.timeout(30_000));
    assert.equal(proof.proved, true);
    const accounts = await stage.admin.list(serviceAccounts, { namespace: stage.namespace });
    assert.deepEqual(
      accounts.items.filter(({ metadata }) => metadata.name.endsWith('.0-proof')),
      [],
    );
  });

  it('reads and updates its entry, immediately visible to others', async () => {
    await running(live);
    assert.equal(await stage.verdict(live.token, (client) => client.get(clusterInventories, entry.ref)), 200);
    assert.equal(await stage.verdict(live.token, write(entry.ref, 'first')), 200);
    const { status } = await stage.read(entry);
    assert.equal(own(own(own(status, 'outputs'), 'network'), 'vnetName'), 'first');
  });

  const runs: [string, () => Promise<IssuedToken>, 200 | 403][] = [
    ['of the current run', async () => live, 200],
    [
      'of a finished run',
      async () => {
        await running(live, { phase: 'Idle', credentialId: undefined });
        return live;
      },
      403,
    ],
    [
      'of a replaced run',
      async () => {
        await running(await stage.token(entry, network), { seq: 2 });
        return live;
      },
      403,
    ],
    ['without a run', () => stage.token(entry, network), 403],
    [
      'that was refreshed and is still valid',
      async () => {
        const next = await stage.token(entry, network);
        await running(next, { previous: { id: live.id, expiresAtMs: Date.now() + hour } });
        return live;
      },
      200,
    ],
    [
      'that was refreshed and has expired',
      async () => {
        const next = await stage.token(entry, network);
        await running(next, { previous: { id: live.id, expiresAtMs: Date.now() - 1_000 } });
        return live;
      },
      403,
    ],
    [
      'that replaced another one',
      async () => {
        const next = await stage.token(entry, network);
        await running(next, { previous: { id: live.id, expiresAtMs: Date.now() + hour } });
        return next;
      },
      200,
    ],
    ['of another entry', async () => ofOther, 403],
  ];
  for (const [what, tokenOf, expected] of runs) {
    it(`${expected === 200 ? 'may write' : 'may not write'} if it is one ${what}`, async () => {
      await running(live);
      const { token } = await tokenOf();
      assert.equal(await stage.verdict(token, write(entry.ref, what.replaceAll(/\W+/g, '-'))), expected);
    });
  }

  const calls: [string, (client: Client) => Promise<unknown>, number][] = [
    ['read the entry', (client) => client.get(clusterInventories, entry.ref), 200],
    ['write the output of another component', (client) => patch(entry.ref, { outputs: { cluster: {} } })(client), 403],
    [
      'write its own output and that of another component',
      (client) => patch(entry.ref, { outputs: { network: { a: 1 }, cluster: { a: 1 } } })(client),
      403,
    ],
    ['write conditions', (client) => patch(entry.ref, { conditions: [] })(client), 403],
    [
      'write its own component status',
      (client) =>
        patch(entry.ref, { components: [{ name: 'network', state: 'Done', since: '2026-11-21T00:00:00Z' }] })(client),
      403,
    ],
    ['change the spec', (client) => client.mergePatch(clusterInventories, entry.ref, { spec: { suspend: true } }), 403],
    ['delete the entry', (client) => client.delete(clusterInventories, entry.ref), 403],
    ['list entries', (client) => client.list(clusterInventories, { namespace: stage.namespace }), 403],
    ['read another entry', (client) => client.get(clusterInventories, other.ref), 403],
    ['write another entry', (client) => write(other.ref)(client), 403],
    ['read the Secret of the kubeconfig', (client) => client.get(secrets, kc(entry)), 403],
    ['list Secrets', (client) => client.list(secrets, { namespace: stage.namespace }), 403],
    [
      'read its record',
      (client) => client.get(reconcileRuns, { namespace: stage.namespace, name: runName(entry.ref, 'network') }),
      403,
    ],
    [
      'request another token',
      (client) =>
        client.createToken(
          { namespace: stage.namespace, name: `inventory-${entry.ref.uid}.network` },
          { expirationSeconds: 600 },
        ),
      403,
    ],
  ];
  for (const [what, call, expected] of calls) {
    it(`${expected === 200 ? 'allows' : 'denies'} a component to ${what}`, async () => {
      await running(live);
      assert.equal(await stage.verdict(live.token, call), expected);
    });
  }

  it('causes a rejection of the whole patch that names the foreign path, and an audit line that names the run', async () => {
    await running(live, { seq: 7 });
    const before = await stage.read(entry);
    const both = patch(entry.ref, { outputs: { network: { vnetName: 'w' }, cluster: { endpoint: 'e' } } });
    const message = await stage.refusal(live.token, both);
    assert.match(message, /ForeignPath: component network does not own \/status\/outputs\/cluster; it may only write/);
    assert.deepEqual((await stage.read(entry)).status, before.status);
    const lines = stage.audit().filter(({ run }) => run === `${entry.ref.uid}.network.7`);
    assert.deepEqual(
      lines.map(({ verdict, code, component }) => [verdict, code, component]),
      [['denied', 'ForeignPath', 'network']],
    );
  });

  it('reads the kubeconfig if the component may, and writes it if the component produces it', async () => {
    const [reader, producer] = [await stage.token(entry, eventing), await stage.token(entry, kubeconfig)];
    const fill = (client: Client) => client.mergePatch(secrets, kc(entry), { stringData: { config: 'x' } });
    const read = (client: Client) => client.get(secrets, kc(entry));
    const verdicts = [
      await stage.verdict(producer.token, fill),
      await stage.verdict(producer.token, read),
      await stage.verdict(reader.token, read),
      await stage.verdict(reader.token, fill),
      await stage.verdict(reader.token, (client) => client.get(secrets, kc(other))),
    ];
    assert.deepEqual(verdicts, [200, 200, 200, 403, 403]);
    await stage.record(entry, 'kubeconfig', { credentialId: producer.id });
    const publish = (name: string) => patch(entry.ref, { outputs: { kubeconfig: { secretRef: { name } } } });
    assert.match(await stage.refusal(producer.token, publish('elsewhere')), /ForeignPath: /);
    assert.equal(await stage.verdict(producer.token, publish(kc(entry).name)), 200);
  });

  it('lives for ten minutes, and differs from a forged one and from a call token', async () => {
    assert.ok(live.expiresAtMs - Date.now() <= 600_000);
    const reader = tokenReader(stage.server);
    assert.deepEqual(await reader.read(live.token, signal), {
      account: `system:serviceaccount:${stage.namespace}:inventory-${entry.ref.uid}.network`,
      credentialId: live.id,
    });
    const [head, , tail] = live.token.split('.');
    const forged = Buffer.from(JSON.stringify({ sub: 'x', jti: live.id })).toString('base64url');
    assert.equal(await reader.read(`${head}.${forged}.${tail}`, signal), undefined);
    const call = await stage.tokens.forCall('network', signal);
    assert.equal(await reader.read(call, signal), undefined);
    const caller = await stage.server.reviewToken(call, { audiences: ['drawbridge/network'] });
    assert.equal(caller?.username, 'system:serviceaccount:drawbridge-system:drawbridge-inventory');
    assert.equal(await stage.server.reviewToken(call, { audiences: ['drawbridge/cluster'] }), undefined);
    assert.equal(await stage.verdict(call, (client) => client.get(clusterInventories, entry.ref)), 401);
  });

  it('has no permissions after the access to its entry is withdrawn; others keep theirs', async () => {
    await stage.record(other, 'network', { credentialId: ofOther.id });
    await stage.accounts.withdraw(entry.ref, signal);
    const read = (ref: Entry['ref']) => (client: Client) => client.get(clusterInventories, ref);
    await until('the end', async () => (await stage.verdict(live.token, read(entry.ref))) !== 200, {
      timeoutMs: 30_000,
    });
    assert.equal(await stage.verdict(ofOther.token, write(other.ref)), 200);
    assert.equal(await codeOf(stage.admin.get(secrets, kc(entry))), 404);
  });

  const kc = ({ ref }: Entry) => ({ namespace: stage.namespace, name: kubeconfigSecretName(ref.uid) });
});

describe('a user with all permissions in a namespace without entries', function () {
  this.timeout(120_000);
  let stage: InventoryStage;

  before(async () => {
    stage = await InventoryStage.open();
  });
  after(() => stage?.close());

  it('cannot end a run of an entry in another namespace, nor write into it', async () => {
    const { server, plane, cluster } = stage;
    const component = await stage.component('network', () => ({ outcome: 'Done', outputs: { network: { of: 'us' } } }));
    const { ref } = await stage.entry('victim');
    await stage.ready('victim');

    const namespace = await testNamespace('attacker', plane);
    const account = { namespace, name: accountName(ref.uid, 'network') };
    await cluster.client.create(serviceAccounts, { apiVersion: 'v1', kind: 'ServiceAccount', metadata: account });
    const { token } = await cluster.client.createToken(account, { expirationSeconds: 600 });
    const forged = runObject({
      entry: { ...ref, namespace },
      component: 'network',
      seq: 99,
      phase: 'Running',
      operation: 'reconcile',
      reasons: ['Created'],
      inputsDigest: undefined,
      credentialId: credentialIdOf(token),
      previousCredential: undefined,
      startedAtMs: Date.now(),
      asynchronous: true,
      deadlineMs: Date.now() + hour,
      attempt: 0,
      nextAtMs: undefined,
      heldBy: undefined,
      lastOutcome: undefined,
      history: [],
    });
    await cluster.client.create(reconcileRuns, forged);
    const run = `${ref.uid}.network.99`;
    const answer = await fetch(`${server.callbackUrl}/v1/runs/${run}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}` },
      body: JSON.stringify({ run, outcome: 'Done', outputs: { network: { of: 'them' } } }),
    });
    assert.deepEqual([answer.status, own(await answer.json(), 'code')], [403, 'ForeignCredential']);
    const entry = await stage.get('victim');
    assert.deepEqual(entry.content.status.outputs, { network: { of: 'us' } });
    // The active run there delays no run here.
    const before = component.calls.length;
    await stage.patch('victim', { spec: { components: { network: { config: { size: 2 } } } } });
    await stage.until('the next run', () => component.calls.length > before);

    await cluster.client.delete(reconcileRuns, forged.metadata);
    await plane.call('DELETE', `/api/v1/namespaces/${namespace}`);
  });
});

import assert from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import { until } from '../../../sandbox/wait.ts';
import type { ReconcileRequest } from '../../../src/api/inventory/contract/request.ts';
import { clusterInventories, componentReconcilers, maxEntryBytes } from '../../../src/api/inventory/names.ts';
import { apiVersionOf } from '../../../src/api/object.ts';
import type { Entry } from '../../../src/inventory/entry.ts';
import { entryBytes } from '../../../src/inventory/policy/entry-size.ts';
import type { IssuedToken } from '../../../src/inventory/ports.ts';
import type { Client } from '../../../src/kube/client.ts';
import { report } from '../../support/inventory/run-report.ts';
import { ServiceAddress } from '../../support/inventory/service-address.ts';
import { InventoryStage } from '../../support/inventory/stage.ts';
import { patchStatus, readEntry } from '../../support/inventory/status-patch.ts';
import { codeOf, objectOf, WriteAuthorizationStage } from '../../support/inventory/write-authorization-stage.ts';

const network = { name: 'network', kubeconfig: 'none' } as const;

describe('the webhooks of the inventory', function () {
  this.timeout(120_000);
  let stage: WriteAuthorizationStage;
  let entry: Entry;
  let token: IssuedToken;

  before(async () => {
    stage = await WriteAuthorizationStage.open();
    await stage.register('network');
    entry = await stage.entry('rt-1');
    token = await stage.token(entry, network);
    await stage.record(entry, 'network', { credentialId: token.id });
  });
  after(() => stage?.close());

  const write = (client: Client) =>
    client.mergePatch(
      clusterInventories,
      entry.ref,
      { status: { outputs: { network: { at: Date.now() } } } },
      { subresource: 'status' },
    );
  const note = (length: number) => (client: Client) =>
    client.mergePatch(clusterInventories, entry.ref, { spec: { cluster: { notes: 'x'.repeat(length) } } });

  it('limit entries to 64 KiB for every writer, and report the size', async () => {
    await note(1)(stage.admin);
    // resourceVersion and generation may grow by a digit.
    const room = maxEntryBytes - entryBytes(await stage.read(entry)) - 8;
    assert.equal(await codeOf(note(room)(stage.admin)), 200);
    await assert.rejects(
      note(room + 17)(stage.admin),
      /EntryTooLarge: the entry would have 655\d\d bytes; at most 65536 are allowed/,
    );
    assert.match(
      await stage.refusal(token.token, (client) =>
        client.mergePatch(
          clusterInventories,
          entry.ref,
          { status: { outputs: { network: { x: 'x'.repeat(100) } } } },
          { subresource: 'status' },
        ),
      ),
      /EntryTooLarge/,
    );
    assert.equal(await codeOf(note(1)(stage.admin)), 200);
  });

  const registrations: [string, string, object, RegExp][] = [
    ['with the path of another', 'vnet', { writes: ['/status/outputs/network/vnet'] }, /PathTaken: .*network/],
    ['that reads its own output', 'loop', { reads: ['/status/outputs/loop/x'] }, /PathTaken: /],
    [
      'with an invalid selector',
      'odd',
      { selector: { matchExpressions: [{ key: 'a', operator: 'Near' }] } },
      /InvalidObject: /,
    ],
  ];
  for (const [what, name, spec, message] of registrations) {
    it(`reject a registration ${what}`, async () => {
      await assert.rejects(stage.register(name, spec), message);
    });
  }

  it('keep a registration while it has runs', async () => {
    await assert.rejects(
      stage.admin.delete(componentReconcilers, { name: 'network' }),
      /HasRuns: component network still has runs for .*\/rt-1;/,
    );
    const all = `/apis/${apiVersionOf(componentReconcilers)}/${componentReconcilers.plural}`;
    const { status, body } = await stage.plane.call('DELETE', `${all}?fieldSelector=metadata.name%3Dnetwork`);
    assert.equal(status, 422);
    assert.match(JSON.stringify(body), /HasRuns: component network still has runs/);
    assert.equal(await codeOf(stage.admin.get(componentReconcilers, { name: 'network' })), 200);
  });

  it('stop only components while they are unavailable', async () => {
    assert.equal(await stage.verdict(token.token, write), 200);
    await stage.stopServing();
    // 500: the webhook was unreachable.
    assert.equal(await stage.verdict(token.token, write), 500);
    assert.equal(await stage.verdict(token.token, (client) => client.get(clusterInventories, entry.ref)), 200);
    assert.equal(await codeOf(note(2)(stage.admin)), 200);
    assert.equal(await codeOf(stage.entry('rt-2')), 200);
    const large = { cluster: { notes: 'x'.repeat(maxEntryBytes) } };
    const object = objectOf(clusterInventories, { namespace: stage.namespace, name: 'rt-3' }, large);
    assert.equal(await codeOf(stage.admin.create(clusterInventories, object)), 200);
  });

  it('allow component writes again when they are back, and let oversized entries shrink', async () => {
    await stage.serve();
    await until('the write', async () => (await stage.verdict(token.token, write)) === 200, { timeoutMs: 30_000 });
    const ref = { namespace: stage.namespace, name: 'rt-3' };
    const label = { metadata: { labels: { a: 'b' } } };
    assert.equal(await codeOf(stage.admin.mergePatch(clusterInventories, ref, label)), 413);
    const smaller = { spec: { cluster: { notes: 'x'.repeat(maxEntryBytes - 1) } } };
    assert.equal(await codeOf(stage.admin.mergePatch(clusterInventories, ref, smaller)), 200);
  });
});

describe('the inventory', function () {
  this.timeout(120_000);
  let stage: InventoryStage;
  let webhooks: ServiceAddress;

  before(async () => {
    webhooks = await ServiceAddress.open();
    stage = await InventoryStage.open([], { front: { webhooks: webhooks.port } });
    webhooks.setServers(stage.server.ports.webhooks);
  });
  afterEach(async () => stage?.clear());
  after(async () => {
    if (stage) webhooks.setServers(stage.server.ports.webhooks);
    await stage?.close();
    webhooks?.close();
  });

  const sizes = (size: number) => ({
    spec: { components: { writer: { config: { size } }, giver: { config: { size } } } },
  });
  const outputsOf = async (name: string) => (await stage.get(name)).content.status.outputs;
  const write = async (run: ReconcileRequest, seq: number): Promise<number> =>
    (await patchStatus(run, { status: { outputs: { writer: { seq } } } })).status;
  const recordOf = async (component: string) =>
    (await stage.records()).find((record) => record.component === component);

  it('retries runs that write by themselves while webhooks are unavailable, and does not affect others', async () => {
    const statuses: number[] = [];
    const writer = await stage.component('writer', async (run) => {
      const status = await write(run, run.run.seq);
      statuses.push(status);
      return status === 200 ? { outcome: 'Done' } : { outcome: 'Retry', message: `${status}` };
    });
    await stage.component('giver', ({ run }) => ({ outcome: 'Done', outputs: { giver: { seq: run.seq } } }));
    await stage.entry('one');
    await stage.ready('one');
    webhooks.setServers();
    await stage.patch('one', sizes(1));
    await stage.until('a run that is to be retried', async () => {
      const record = await recordOf('writer');
      return record?.lastOutcome?.outcome === 'Retry' && record.attempt > 0;
    });
    assert.deepEqual(statuses.slice(0, 2), [200, 500]);
    // The server writes returned outputs.
    await stage.until('what was returned', async () =>
      isDeepStrictEqual((await outputsOf('one'))['giver'], { seq: 2 }),
    );
    const { ref } = await stage.entry('two');
    await stage.patch('two', { spec: { cluster: { note: 'written' } } });
    assert.equal((await stage.get('two')).ref.uid, ref.uid);
    await stage.until('the row', async () =>
      (await stage.get('one')).components.some(({ name, state }) => name === 'writer' && state === 'Retrying'),
    );
    webhooks.setServers(stage.server.ports.webhooks);
    await stage.ready('one', 'two');
    assert.deepEqual([...new Set(statuses)].sort(), [200, 500]);
    const last = writer.callsFor((await stage.get('one')).ref.uid).at(-1)?.request.run.seq;
    assert.deepEqual((await outputsOf('one'))['writer'], { seq: last });
    assert.equal((await recordOf('writer'))?.attempt, 0);
  });

  it('without its server can be read and written by users, and by no component until the server is back', async () => {
    let run: ReconcileRequest | undefined;
    await stage.component('writer', (request) => {
      if (run && run.entry.id !== request.entry.id) return { outcome: 'Done' };
      run = request;
      return { status: 202, body: { leaseSeconds: 120 } };
    });
    await stage.entry('one');
    await stage.until('the run to go on', async () => (await recordOf('writer'))?.asynchronous === true);
    assert.ok(run);
    const goesOn = run;
    assert.equal(await write(goesOn, 1), 200);
    await stage.server.stop('SIGKILL');
    assert.equal(await write(goesOn, 2), 500);
    assert.equal((await readEntry(goesOn)).status, 200);
    await stage.patch('one', { spec: { cluster: { note: 'meanwhile' } } });
    await stage.entry('two');
    assert.deepEqual(await outputsOf('one'), { writer: { seq: 1 } });
    await stage.server.begin();
    await stage.until('the component to write again', async () => (await write(goesOn, 3)) === 200);
    assert.equal(await report(goesOn, { outcome: 'Done' }), 200);
    await stage.until('its end', async () => {
      const record = (await stage.records()).find(({ entry }) => entry.uid === goesOn.entry.id);
      return record?.lastOutcome?.outcome === 'Done' && record.seq === 1;
    });
    assert.deepEqual(await outputsOf('one'), { writer: { seq: 3 } });
  });
});

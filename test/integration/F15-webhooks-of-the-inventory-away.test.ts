import assert from 'node:assert/strict';
import { until } from '../../sandbox/wait.ts';
import { clusterInventories, componentReconcilers, maxEntryBytes } from '../../src/api/inventory/names.ts';
import type { Entry } from '../../src/inventory/entry.ts';
import { entryBytes } from '../../src/inventory/policy/entry-size.ts';
import type { RunToken } from '../../src/inventory/ports/token-issuer.ts';
import type { Client } from '../../src/kube/client.ts';
import { codeOf, FenceStage, objectOf } from '../support/inventory/fence-stage.ts';

const network = { name: 'network', kubeconfig: 'none' } as const;

describe('the webhooks of the inventory', function () {
  this.timeout(120_000);
  let stage: FenceStage;
  let entry: Entry;
  let token: RunToken;

  before(async () => {
    stage = await FenceStage.open();
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

  it('keep entries within 64 KiB, by whomever, and say how large it would be', async () => {
    await note(1)(stage.admin);
    // resourceVersion and generation may grow by a digit.
    const room = maxEntryBytes - entryBytes(await stage.read(entry)) - 8;
    assert.equal(await codeOf(note(room)(stage.admin)), 200);
    await assert.rejects(
      note(room + 17)(stage.admin),
      /EntryTooLarge: the entry would have 655\d\d bytes, and may have 65536/,
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
    ['of the path of another', 'vnet', { writes: ['/status/outputs/network/vnet'] }, /PathTaken: .*network/],
    ['that reads what it writes', 'loop', { reads: ['/status/outputs/loop/x'] }, /OwnOutputRead: /],
    [
      'with a selector that is none',
      'odd',
      { selector: { matchExpressions: [{ key: 'a', operator: 'Near' }] } },
      /InvalidSpec: /,
    ],
  ];
  for (const [what, name, spec, message] of registrations) {
    it(`refuse a registration ${what}`, async () => {
      await assert.rejects(stage.register(name, spec), message);
    });
  }

  it('keep a registration as long as it has runs', async () => {
    await assert.rejects(
      stage.admin.delete(componentReconcilers, { name: 'network' }),
      /HasRuns: .*\.network among them/,
    );
  });

  it('stop components alone while they are away', async () => {
    assert.equal(await stage.verdict(token.token, write), 200);
    await stage.away();
    // 500: the webhook could not be asked.
    assert.equal(await stage.verdict(token.token, write), 500);
    assert.equal(await stage.verdict(token.token, (client) => client.get(clusterInventories, entry.ref)), 200);
    assert.equal(await codeOf(note(2)(stage.admin)), 200);
    assert.equal(await codeOf(stage.entry('rt-2')), 200);
    const large = { cluster: { notes: 'x'.repeat(maxEntryBytes) } };
    const object = objectOf(clusterInventories, { namespace: stage.namespace, name: 'rt-3' }, large);
    assert.equal(await codeOf(stage.admin.create(clusterInventories, object)), 200);
  });

  it('let components write again when they are back, and let what got too large shrink', async () => {
    await stage.serve();
    await until('the write', async () => (await stage.verdict(token.token, write)) === 200, { timeoutMs: 30_000 });
    const ref = { namespace: stage.namespace, name: 'rt-3' };
    const label = { metadata: { labels: { a: 'b' } } };
    assert.equal(await codeOf(stage.admin.mergePatch(clusterInventories, ref, label)), 413);
    const smaller = { spec: { cluster: { notes: 'x'.repeat(maxEntryBytes - 1) } } };
    assert.equal(await codeOf(stage.admin.mergePatch(clusterInventories, ref, smaller)), 200);
  });
});

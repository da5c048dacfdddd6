import assert from 'node:assert/strict';
import {
  apiServiceExports,
  apiServiceNamespaces,
  boundSchemas,
  ownerLabel,
} from '../../../../src/api/binding/names.ts';
import type { ObjectName } from '../../../../src/api/object.ts';
import { namespaces } from '../../../../src/api/resources.ts';
import { namespaceController } from '../../../../src/binding/namespaces/namespace-controller.ts';
import { ApiError } from '../../../../src/kube/errors.ts';
import { type Log, noLog } from '../../../../src/observe/log.ts';
import { depsOf } from '../../../support/binding/deps.ts';
import { boundSchemaManifest, exportManifest, serviceNamespaceManifest } from '../../../support/binding/objects.ts';
import {
  clusterNamespace,
  otherKonnectorAnnotations,
  SyncStage,
  teaCopy,
} from '../../../support/binding/sync-stage.ts';

describe('the namespace controller', () => {
  let stage: SyncStage;
  let stop: AbortController;
  let warnings: number;
  const asked: ObjectName = { namespace: clusterNamespace, name: 'team-a' };

  async function run(allowed?: (namespace: string) => boolean): Promise<void> {
    const log: Log = { ...noLog, warn: () => void warnings++, child: () => log };
    const deps = depsOf(stage.consumer, stage.clock, { log });
    void namespaceController(stage.session(), deps, allowed).run(stop.signal);
    await stage.settle();
  }

  function ask(owner?: 'provider' | 'consumer'): void {
    const labels = owner ? { labels: { [ownerLabel]: owner } } : {};
    const status = { namespace: 'kb-acme-team-a' };
    stage.provider.put(apiServiceNamespaces, serviceNamespaceManifest({ metadata: { ...asked, ...labels }, status }));
  }

  const putTea = (): void => {
    const annotations = otherKonnectorAnnotations('team-a', 'c-1');
    stage.putCopy(teaCopy, { metadata: { name: 'tea', annotations } });
  };

  beforeEach(() => {
    stage = new SyncStage();
    stop = new AbortController();
    warnings = 0;
  });
  afterEach(() => stop.abort());

  it('creates the namespaces that the provider requests', async () => {
    await run();
    ask('provider');
    await stage.settle();
    const made = stage.consumer.find(namespaces, { name: 'team-a' });
    assert.deepEqual(made?.metadata.labels, { [ownerLabel]: 'provider' });
    stage.consumer.drop(namespaces, { name: 'team-a' });
    await stage.settle();
    assert.ok(stage.consumer.find(namespaces, { name: 'team-a' }), 'and again');
    assert.deepEqual(stage.provider.writes, []);
  });

  it('does not change an existing namespace, and accepts one that another client creates', async () => {
    stage.addNamespace('team-a');
    ask('provider');
    await run();
    assert.deepEqual(stage.consumer.writes, []);
    stage.consumer.fault = ({ verb }) => {
      if (verb === 'create') throw new ApiError(409, 'AlreadyExists', 'already exists');
    };
    stage.consumer.drop(namespaces, { name: 'team-a' });
    await stage.settle(60_000);
    assert.equal(stage.consumer.writes.length, 1);
  });

  it('creates no namespace that the provider may not request', async () => {
    ask('provider');
    await run((namespace) => namespace !== 'team-a');
    assert.deepEqual(stage.consumer.writes, []);
  });

  for (const owner of [undefined, 'consumer'] as const) {
    it(`deletes the APIServiceNamespace of a deleted namespace (owner: ${owner ?? 'none'})`, async () => {
      stage.addNamespace('team-a');
      ask(owner);
      await run();
      assert.deepEqual(stage.provider.writes, []);
      stage.consumer.drop(namespaces, { name: 'team-a' });
      await stage.settle();
      assert.deepEqual(stage.provider.writes, ['delete apiservicenamespaces kb-acme/team-a']);
      assert.deepEqual(stage.consumer.writes, []);
    });
  }

  it('confirms with a read that a namespace is deleted', async () => {
    await run();
    const held: (() => void)[] = [];
    stage.consumer.deliver = (_, event) => void held.push(event);
    stage.addNamespace('team-a');
    ask();
    await stage.settle();
    assert.deepEqual(stage.provider.writes, []);
    for (const event of held) event();
  });

  it('keeps an APIServiceNamespace while its service namespace has copies', async () => {
    stage.provider.put(apiServiceExports, exportManifest());
    stage.provider.put(boundSchemas, boundSchemaManifest());
    stage.putCopy({ namespace: 'kb-acme-team-a', name: 'theirs' });
    putTea();
    ask();
    await run();
    await stage.settle(20_000);
    assert.deepEqual(stage.provider.writes, []);
    stage.provider.drop(stage.kettles.provider, teaCopy);
    await stage.settle(20_000);
    assert.deepEqual(stage.provider.writes, ['delete apiservicenamespaces kb-acme/team-a']);
  });

  it('checks remaining copies with backoff', async () => {
    stage.provider.put(apiServiceExports, exportManifest());
    stage.provider.put(boundSchemas, boundSchemaManifest());
    putTea();
    ask();
    await run();
    await stage.settle(3_600_000);
    const looks = stage.consumer.calls.filter(({ verb }) => verb === 'get').length;
    assert.ok(looks <= 20, `${looks} looks within an hour`);
    stage.provider.drop(stage.kettles.provider, teaCopy);
    await stage.settle(300_000);
    assert.deepEqual(stage.provider.writes, ['delete apiservicenamespaces kb-acme/team-a']);
  });

  it('keeps an APIServiceNamespace until the exports of the provider are listed', async () => {
    putTea();
    stage.provider.put(boundSchemas, boundSchemaManifest());
    await run();
    const { deliver } = stage.provider;
    const late: (() => void)[] = [];
    stage.provider.deliver = (_, event) => void late.push(event);
    stage.provider.put(apiServiceExports, exportManifest());
    stage.provider.deliver = deliver;
    ask();
    await stage.settle(20_000);
    for (const event of late) event();
    await stage.settle(20_000);
    assert.deepEqual(stage.provider.writes, []);
  });

  it('keeps an APIServiceNamespace while an export or its schema is missing or not valid', async () => {
    putTea();
    stage.provider.put(apiServiceExports, exportManifest());
    ask();
    await run();
    await stage.settle(20_000);
    assert.deepEqual(stage.provider.writes, [], 'without the schema');
    stage.provider.put(boundSchemas, boundSchemaManifest());
    stage.provider.put(apiServiceExports, { ...exportManifest(), spec: { isolation: 'Quantum' } });
    await stage.settle(600_000);
    assert.deepEqual(stage.provider.writes, [], 'with an export that does not read');
  });

  it('does not treat a 404 of an unknown kind as a deleted namespace', async () => {
    stage.consumer.fault = ({ verb }) => {
      if (verb === 'get') throw new ApiError(404, '', '404 page not found');
    };
    ask();
    await run();
    await stage.settle(60_000);
    assert.deepEqual(stage.provider.writes, []);
  });

  it('retries at least every five seconds while permissions are missing, and warns once', async () => {
    let refusals = 0;
    stage.provider.fault = ({ verb, plural }) => {
      if (verb !== 'delete' || plural !== apiServiceNamespaces.plural) return;
      refusals++;
      throw new ApiError(403, 'Forbidden', 'apiservicenamespaces is forbidden');
    };
    ask();
    await run();
    await stage.settle(60_000);
    const before = refusals;
    assert.ok(before >= 12 && before <= 24, `${before} attempts`);
    await stage.settle(10_000);
    assert.ok(refusals - before >= 2, `${refusals - before} more`);
    assert.equal(warnings, 1);
    stage.provider.fault = () => {};
    await stage.settle(5_000);
    assert.equal(stage.provider.find(apiServiceNamespaces, asked), undefined);
  });
});

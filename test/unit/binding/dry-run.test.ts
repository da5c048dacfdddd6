import assert from 'node:assert/strict';
import type { KubeObject } from '../../../src/api/object.ts';
import { configMaps, secrets } from '../../../src/api/resources.ts';
import { changesBetween, dryRunClient } from '../../../src/binding/dry-run.ts';
import type { Client, WriteOptions } from '../../../src/kube/client.ts';
import { ApiError } from '../../../src/kube/errors.ts';
import { createLog } from '../../../src/observe/log.ts';
import { MemoryCluster } from '../../support/binding/memory-cluster.ts';
import { pluck } from '../../support/pluck.ts';
import { SimulatedClock } from '../../support/simulated-clock.ts';

const object = (kind: string, name: string, data: Record<string, string>): KubeObject => ({
  apiVersion: 'v1',
  kind,
  metadata: { namespace: 'team-a', name },
  data,
});
const settings = (data: Record<string, string> = { size: '1' }) => object('ConfigMap', 'settings', data);
const creds = (password: string) => object('Secret', 'creds', { password });
const at = { namespace: 'team-a', name: 'settings' };

describe('a dry run', () => {
  let cluster: MemoryCluster;
  let lines: { message: string; resource: string; name: string; changes?: string[]; error?: string }[];
  let raw: string;
  let sent: { verb: string; dryRun: boolean | undefined }[];
  let refusal: Error | undefined;
  let client: Client;
  beforeEach(() => {
    const clock = new SimulatedClock();
    cluster = new MemoryCluster(clock);
    cluster.put(configMaps, settings());
    cluster.put(secrets, creds('b2xk'));
    [lines, raw, sent, refusal] = [[], '', [], undefined];
    const write = (line: string): void => {
      raw += line;
      lines.push(JSON.parse(line));
    };
    const log = createLog({ clock, write });
    // An API server answers a dry run like a write, but changes nothing.
    const answer = (verb: string) => async (_: unknown, __: unknown, third?: unknown, fourth?: unknown) => {
      sent.push({ verb, dryRun: ((fourth ?? third) as WriteOptions | undefined)?.dryRun });
      if (refusal) throw refusal;
      return settings({ size: '2' });
    };
    const server: Client = {
      ...cluster.client,
      create: answer('create'),
      replace: answer('replace'),
      apply: answer('apply'),
      mergePatch: answer('mergePatch'),
      jsonPatch: answer('jsonPatch'),
      leaderOnly: (check) => ({
        ...server,
        async create(...args) {
          check();
          return server.create(...args);
        },
      }),
    };
    client = dryRunClient(server, log);
  });
  afterEach(() => assert.deepEqual(cluster.writes, []));

  const writes: readonly [string, string, (client: Client) => Promise<unknown>, string][] = [
    ['create', 'create', (own) => own.create(configMaps, settings()), 'data.size: "2" added'],
    ['update', 'replace', (own) => own.replace(configMaps, settings({ size: '2' })), 'data.size: "1" → "2"'],
    ['patch', 'mergePatch', (own) => own.mergePatch(configMaps, at, { data: { size: '2' } }), 'data.size: "1" → "2"'],
    ['patch', 'jsonPatch', (own) => own.jsonPatch(configMaps, at, []), 'data.size: "1" → "2"'],
    ['apply', 'apply', (own) => own.apply(configMaps, settings(), { fieldManager: 'm' }), 'data.size: "1" → "2"'],
  ];
  for (const [verb, call, write, change] of writes) {
    it(`sends ${call} as a dry run and prints what it would change`, async () => {
      await write(client);
      assert.deepEqual(sent, [{ verb: call, dryRun: true }]);
      const told = pluck(lines, 'message', 'resource', 'name');
      assert.deepEqual(told, [[`would ${verb}`, 'configmaps', 'team-a/settings']]);
      const changes = lines[0]?.changes ?? [];
      assert.ok(changes.includes(change), changes.join());
    });
  }

  it('prints a repeated write once, and again after a change', async () => {
    for (let i = 0; i < 3; i++) await client.mergePatch(configMaps, at, {});
    assert.equal(lines.length, 1);
    cluster.put(configMaps, settings({ size: '9' }));
    await client.mergePatch(configMaps, at, {});
    assert.equal(lines.length, 2);
  });

  it('prints nothing when nothing would change', async () => {
    cluster.put(configMaps, settings({ size: '2' }));
    await client.mergePatch(configMaps, at, {});
    assert.deepEqual(lines, []);
  });

  it('never prints values of a Secret', async () => {
    const server: Client = { ...cluster.client, replace: async () => creds('bmV3'), create: async () => creds('bmV3') };
    const own = dryRunClient(server, { ...createLog({ clock: new SimulatedClock(), write: (line) => (raw += line) }) });
    await own.replace(secrets, creds('bmV3'));
    await own.create(secrets, creds('bmV3'));
    assert.match(raw, /data\.password changed/);
    assert.match(raw, /data\.password added/);
    assert.doesNotMatch(raw, /bmV3|b2xk/);
    refusal = new ApiError(422, 'Invalid', 'data[password]: Invalid value: "bmV3"');
    await assert.rejects(client.replace(secrets, creds('bmV3')));
    assert.doesNotMatch(raw, /bmV3|b2xk/);
    assert.equal(lines[0]?.error, '422 Invalid');
  });

  it('rejects and prints an error of the server', async () => {
    refusal = new ApiError(403, 'Forbidden', 'not allowed');
    await assert.rejects(client.create(configMaps, settings()), refusal);
    assert.equal(lines[0]?.message, 'create would fail');
    assert.equal(lines[0]?.error, 'not allowed');
  });

  it('counts a write as successful if a webhook does not support dry runs', async () => {
    refusal = new ApiError(400, 'BadRequest', 'admission webhook "x" does not support dry run');
    assert.deepEqual(await client.create(configMaps, settings()), settings());
    assert.equal(lines[0]?.message, 'would create');
  });

  it('deletes nothing, and returns the result of a delete', async () => {
    assert.equal(await client.delete(configMaps, at), 'deleted');
    assert.equal(await client.delete(configMaps, { namespace: 'team-a', name: 'other' }), 'absent');
    await assert.rejects(client.delete(configMaps, at, { uid: 'another' }), { code: 409 });
    assert.deepEqual(pluck(lines, 'message', 'name'), [['would delete', 'team-a/settings']]);
    assert.ok(cluster.find(configMaps, at));
  });

  it('keeps the leader check of a client', async () => {
    const fenced = client.leaderOnly(() => {
      throw new Error('not leading');
    });
    await assert.rejects(fenced.create(configMaps, settings()), /not leading/);
    assert.deepEqual(sent, []);
  });

  it('creates no tokens', () => assert.rejects(client.createToken(at, { expirationSeconds: 600 }), { code: 'DryRun' }));
});

describe('changes between two objects', () => {
  it('leave out fields that the server sets, and are limited in number and length', () => {
    const settingsWith = (metadata: object): KubeObject => ({ ...settings(), metadata: { ...at, ...metadata } });
    const before = settingsWith({ resourceVersion: '1', generation: 1, managedFields: [{}] });
    const now = settingsWith({ resourceVersion: '2', generation: 2 });
    assert.deepEqual(changesBetween(before, now, false), []);
    const many = Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`key${i}`, 'x'.repeat(200)]));
    const changes = changesBetween(before, { ...now, data: many }, false);
    assert.equal(changes.length, 13);
    assert.equal(changes.at(-1), '29 more');
    assert.ok(changes.every((line) => line.length < 100));
  });

  const cases: readonly [string, unknown, unknown, string[]][] = [
    ['a value', { size: 1 }, { size: 2 }, ['spec.size: 1 → 2']],
    ['a removed field', { size: 1, color: 'red' }, { size: 1 }, ['spec.color: "red" removed']],
    ['a list', { all: [1] }, { all: [1, 2] }, ['spec.all: [1] → [1,2]']],
    ['an object in place of a value', { size: 1 }, { size: { x: 1 } }, ['spec.size: 1 → {"x":1}']],
    ['null in place of nothing', {}, { size: null }, ['spec.size: null added']],
  ];
  for (const [what, was, is, expected] of cases) {
    it(`show ${what}`, () => {
      const of = (spec: unknown): KubeObject => ({ ...settings(), spec });
      assert.deepEqual(changesBetween(of(was), of(is), false), expected);
    });
  }
});

import assert from 'node:assert/strict';
import type { KubeObject } from '../../../src/api/object.ts';
import { namespaces, pods } from '../../../src/api/resources.ts';
import type { Client } from '../../../src/kube/client.ts';
import { staticCredentials } from '../../../src/kube/credentials.ts';
import { type RecordedEvent, regarding } from '../../../src/kube/event-object.ts';
import { type EventRecorder, eventRecorder } from '../../../src/kube/event-recorder.ts';
import { createClient } from '../../../src/kube/http-client.ts';
import { Transport } from '../../../src/kube/transport.ts';
import { advanceIo, settleIo, until } from '../../support/io.ts';
import { pluck } from '../../support/pluck.ts';
import { type Script, ScriptedApiserver, type ScriptedRequest } from '../../support/scripted-apiserver.ts';
import { SimulatedClock } from '../../support/simulated-clock.ts';

describe('event recorder', () => {
  let clock: SimulatedClock;
  let server: ScriptedApiserver;
  let transport: Transport;
  let recorder: EventRecorder;

  const accept: Script = (request, answer) =>
    answer.json(200, request.method === 'POST' ? request.body : { metadata: { name: 'patched' } });

  beforeEach(async () => {
    clock = new SimulatedClock();
    server = await ScriptedApiserver.start(accept);
    transport = new Transport(staticCredentials({ server: server.url }), { clock, random: () => 0.5 });
    const client = createClient(transport);
    recorder = eventRecorder({ client, clock, controller: 'drawbridge/test', instance: 'pod-1' });
  });
  afterEach(() => Promise.all([transport.close(), server.close()]));

  const event = (fields: Partial<RecordedEvent> = {}): RecordedEvent => ({
    regarding: { apiVersion: 'v1', kind: 'Pod', namespace: 'team', name: 'a', uid: 'u' },
    type: 'Normal',
    reason: 'Granted',
    action: 'Access',
    note: 'alice may use it',
    ...fields,
  });
  /** Records an event that is written at once. */
  const written = async (fields: Partial<RecordedEvent> = {}): Promise<void> => {
    recorder.record(event(fields));
    await settleIo();
  };
  const bodyOf = (request: ScriptedRequest | undefined) => (request?.body ?? {}) as Record<string, unknown>;
  const bodies = () => server.requests.map(bodyOf);
  const seriesCount = (index: number) => (bodies()[index]?.['series'] as { count?: number } | undefined)?.count;

  it('writes an events.k8s.io/v1 Event', async () => {
    recorder.record(event());
    await until(() => server.requests.length === 1);
    assert.equal(server.requests[0]?.path, '/apis/events.k8s.io/v1/namespaces/team/events');
    const { metadata, ...rest } = bodyOf(server.requests[0]) as KubeObject;
    assert.match(metadata.name, /^a\.[0-9a-f-]{13}$/);
    assert.deepEqual(rest, {
      apiVersion: 'events.k8s.io/v1',
      kind: 'Event',
      eventTime: '2026-11-21T09:00:00.000000Z',
      reportingController: 'drawbridge/test',
      reportingInstance: 'pod-1',
      action: 'Access',
      reason: 'Granted',
      regarding: event().regarding,
      note: 'alice may use it',
      type: 'Normal',
    });
  });

  it('writes repetitions as a series', async () => {
    await written();
    for (let i = 0; i < 49; i++) recorder.record(event());
    recorder.record(event({ note: 'another' }));
    await advanceIo(clock, 11_000);
    recorder.record(event());
    await advanceIo(clock, 11_000);
    assert.deepEqual(pluck(server.requests, 'method'), ['POST', 'POST', 'PATCH', 'PATCH']);
    assert.deepEqual(bodies()[2]?.['series'], { count: 50, lastObservedTime: '2026-11-21T09:00:00.000000Z' });
    assert.equal(seriesCount(3), 51);
    await clock.advance(6 * 60_000);
    await written();
    assert.equal(server.requests.at(-1)?.method, 'POST', 'after six quiet minutes it is news again');
  });

  it('dates a series by its last occurrence, and not by its write', async () => {
    recorder.record(event());
    await advanceIo(clock, 1_000);
    recorder.record(event());
    await advanceIo(clock, 2_000);
    recorder.record(event());
    await advanceIo(clock, 9_000);
    assert.deepEqual(bodies()[1]?.['series'], { count: 3, lastObservedTime: '2026-11-21T09:00:03.000000Z' });
  });

  it('dates an Event by its first occurrence, although its write waited', async () => {
    let release = (): void => {};
    server.follow((_, answer) => {
      release = () => answer.json(200, { metadata: { name: 'first' } });
    });
    recorder.record(event());
    await until(() => server.requests.length === 1);
    recorder.record(event({ note: 'another' }));
    await clock.advance(1_500);
    server.follow(accept);
    release();
    await until(() => server.requests.length === 2);
    assert.equal(bodies()[1]?.['eventTime'], '2026-11-21T09:00:00.000000Z');
  });

  it('writes the series again if its Event is gone', async () => {
    await written();
    recorder.record(event());
    server.follow((request, answer) =>
      request.method === 'PATCH' ? answer.status(404, 'NotFound') : answer.json(200, request.body),
    );
    await advanceIo(clock, 11_000);
    assert.deepEqual(pluck(server.requests, 'method'), ['POST', 'PATCH', 'POST']);
    assert.equal(seriesCount(2), 2);
  });

  for (const [what, rare] of [
    ['object', { regarding: { apiVersion: 'v1', kind: 'Pod', namespace: 'team', name: 'b' } }],
    ['action', { action: 'Abandon' }],
  ] as const) {
    it(`limits the Events of each ${what} separately, so that frequent ones leave room for rare ones`, async () => {
      for (let i = 0; i < 100; i++) recorder.record(event({ note: `note ${i}` }));
      recorder.record(event({ note: 'rare', ...rare }));
      await until(() => server.requests.length === 26);
      assert.equal(bodies().at(-1)?.['note'], 'rare');
      await clock.advance(5 * 60_000);
      recorder.record(event({ note: 'one more' }));
      await written({ note: 'and too many' });
      assert.equal(server.requests.length, 27);
    });
  }

  it('never fails its caller', async () => {
    for (const script of [(_, answer) => answer.status(403, 'Forbidden'), (_, answer) => answer.reset()] as Script[]) {
      server.follow(script);
      await written({ note: String(script) });
    }
    server.follow(accept);
    recorder.record(event({ note: 'afterwards' }));
    await until(() => bodies().at(-1)?.['note'] === 'afterwards');
  });

  it('writes pending Events when it is closed, and none afterwards', async () => {
    await written();
    recorder.record(event());
    await recorder.close();
    assert.deepEqual(pluck(server.requests, 'method'), ['POST', 'PATCH']);
    await written({ note: 'late' });
    assert.equal(server.requests.length, 2);
  });

  it('waits at most two seconds when it is closed', async () => {
    server.follow(() => undefined);
    await written();
    const closing = recorder.close();
    await advanceIo(clock, 2_100);
    await closing;
  });

  it('fits any object and any note into the limits of an Event', async () => {
    const long = { apiVersion: 'v1', kind: 'Role', name: `System:${'x'.repeat(250)}--` };
    recorder.record(event({ regarding: long, note: '€'.repeat(2_000) }));
    await until(() => server.requests.length === 1);
    const { metadata, note } = bodyOf(server.requests[0]) as KubeObject & { note: string };
    assert.equal(metadata.namespace, 'default');
    assert.match(metadata.name, /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/);
    assert.ok(metadata.name.length <= 253);
    assert.ok(Buffer.byteLength(note) <= 1024 && note.endsWith('€…'));
  });
});

describe('an event recorder of many objects that fail', () => {
  let clock: SimulatedClock;
  let recorder: EventRecorder;
  let writes: ('create' | 'patch')[];
  let created: KubeObject[];

  beforeEach(() => {
    clock = new SimulatedClock();
    writes = [];
    created = [];
    const client: Pick<Client, 'create' | 'mergePatch'> = {
      create: async (_, object) => {
        writes.push('create');
        created.push(object);
        return object;
      },
      mergePatch: async (_, { name }) => {
        writes.push('patch');
        return { apiVersion: 'events.k8s.io/v1', kind: 'Event', metadata: { name } };
      },
    };
    recorder = eventRecorder({ client: client as Client, clock, controller: 'drawbridge/test', instance: 'pod-1' });
  });

  const failing = (object: number, action = 'Sync'): RecordedEvent => ({
    regarding: { apiVersion: 'v1', kind: 'Pod', namespace: 'team', name: `pod-${object}` },
    type: 'Warning',
    reason: 'NotSynced',
    action,
    note: 'forbidden',
  });
  const settle = async (): Promise<void> => {
    for (let i = 0; i < 1_000; i++) await Promise.resolve();
  };
  /** Records an Event of each of the first `count` objects, in parts that fit into the queue. */
  async function record(count: number): Promise<void> {
    for (let object = 0; object < count; object++) {
      recorder.record(failing(object));
      if (object % 100 === 99) await settle();
    }
    await settle();
  }

  it('writes 300 Events of an action at once, and then 5 a second', async () => {
    await record(400);
    assert.equal(writes.length, 300);
    await clock.advance(199);
    await record(400);
    assert.equal(writes.length, 300);
    for (let second = 0; second < 60; second++) {
      await clock.advance(1_000);
      await record(400);
      const bound = 300 + 5 * (second + 1);
      assert.ok(writes.length <= bound, `${writes.length} writes after ${second + 1} s; at most ${bound} are allowed`);
    }
    assert.equal(writes.length, 300 + 5 * 60);
    assert.deepEqual([...new Set(writes)], ['create', 'patch'], 'repetitions count, too');
  });

  it('leaves room for the Events of other actions', async () => {
    await record(400);
    recorder.record(failing(0, 'Emergency'));
    await settle();
    assert.equal(created.length, 301);
    assert.equal(Object(created.at(-1)).action, 'Emergency');
  });

  it('writes an Event that it has dropped with its count, once it is recorded again', async () => {
    await record(301);
    assert.equal(created.length, 300);
    await clock.advance(60_000);
    recorder.record(failing(300));
    await clock.advance(10_000);
    await settle();
    assert.equal(created.length, 301);
    assert.equal(Object(created.at(-1)).series.count, 2);
  });
});

describe('regarding', () => {
  const pod = { apiVersion: 'v1', kind: 'Pod', namespace: 'a', name: 'b' };

  it('names the object by kind, namespace, name, and uid, and omits unknown fields', () => {
    assert.deepEqual(regarding(pods, { namespace: 'a', name: 'b', uid: 'c' }), { ...pod, uid: 'c' });
    assert.deepEqual(regarding(pods, { namespace: 'a', name: 'b', uid: undefined }), pod);
    assert.deepEqual(regarding(namespaces, { name: 'a' }), { apiVersion: 'v1', kind: 'Namespace', name: 'a' });
  });
});

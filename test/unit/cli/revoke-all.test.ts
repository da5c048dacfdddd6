import assert from 'node:assert/strict';
import type { KubeObject, Resource } from '../../../src/api/object.ts';
import { type RevokeAllOptions, revokeAll } from '../../../src/cli/revoke-all.ts';
import type { Client, DeleteOptions, ListOptions } from '../../../src/kube/client.ts';
import { ApiError } from '../../../src/kube/errors.ts';
import { SimulatedClock } from '../../support/simulated-clock.ts';

const request = (name: string): KubeObject => ({
  apiVersion: 'crds.wizardofoz.co/v1alpha1',
  kind: 'PodAccessRequest',
  metadata: { name, namespace: 'payments', uid: `uid-${name}` },
});

describe('revoke-all', () => {
  let clock: SimulatedClock;
  let stored: Map<string, KubeObject[]>;
  let deleted: string[];
  let said: string[];
  let lists: ListOptions[];
  let fault: Error | undefined;

  beforeEach(() => {
    clock = new SimulatedClock();
    stored = new Map();
    [deleted, said, lists, fault] = [[], [], [], undefined];
  });

  /** No server runs here: a deleted request stays until the test removes it. */
  const client = {
    list: (resource: Resource, options: ListOptions) => {
      lists.push(options);
      if (fault) return Promise.reject(fault);
      const items = stored.get(resource.plural);
      if (!items) return Promise.reject(new ApiError(404, 'NotFound', 'no such kind'));
      return Promise.resolve({ items: [...items], resourceVersion: '1' });
    },
    delete: (_resource: Resource, { name }: { name: string }, { uid }: DeleteOptions) => {
      deleted.push(`${name} ${uid}`);
      for (const object of stored.get('podaccessrequests') ?? []) {
        if (object.metadata.name === name) object.metadata.deletionTimestamp = '2026-11-21T09:00:00Z';
      }
      return Promise.resolve('deleted');
    },
  } as Pick<Client, 'list' | 'delete'> as Client;

  const start = (options: Partial<RevokeAllOptions> = {}) => {
    const outcome = { done: false, error: undefined as Error | undefined };
    const { signal } = new AbortController();
    const running = revokeAll({
      client,
      clock,
      timeoutMs: 60_000,
      printLine: (line) => said.push(line),
      signal,
      ...options,
    }).then(
      () => {
        outcome.done = true;
      },
      (error: Error) => {
        outcome.error = error;
      },
    );
    return { outcome, running };
  };

  it('deletes each request once, by its uid, and waits until the server has released it', async () => {
    stored.set('podaccessrequests', [request('a'), request('b')]);
    const { outcome } = start();
    await clock.advance(20_000);
    assert.deepEqual(deleted, ['a uid-a', 'b uid-b']);
    assert.equal(outcome.done, false);
    stored.set('podaccessrequests', []);
    await clock.advance(4000);
    assert.equal(outcome.done, true);
    const both =
      '2 open requests and 0 objects of grants remain: PodAccessRequest payments/a, PodAccessRequest payments/b';
    assert.deepEqual(said, [both, both, both, 'nothing is open']);
  });

  it('deletes open requests first, and counts those that have ended apart', async () => {
    const ended = (name: string): KubeObject => ({ ...request(name), status: { ended: { how: 'Expired' } } });
    stored.set('podaccessrequests', [ended('a'), request('b'), ended('c')]);
    const { outcome } = start();
    await clock.advance(1000);
    assert.deepEqual(deleted, ['b uid-b', 'a uid-a', 'c uid-c']);
    stored.set('podaccessrequests', [ended('a')]);
    await clock.advance(1000);
    assert.equal(outcome.done, false);
    stored.set('podaccessrequests', []);
    await clock.advance(4000);
    assert.equal(outcome.done, true);
    assert.deepEqual(said, [
      '1 open request and 0 objects of grants remain: PodAccessRequest payments/b; 2 ended requests remain, too',
      'no access is open, and 1 ended request remains: PodAccessRequest payments/a',
      'nothing is open',
    ]);
  });

  it('checks for 3 s that nothing comes back, and deletes new requests meanwhile', async () => {
    stored.set('podaccessrequests', []);
    const { outcome } = start();
    await clock.advance(2000);
    stored.set('podaccessrequests', [request('late')]);
    await clock.advance(1000);
    stored.set('podaccessrequests', []);
    await clock.advance(2500);
    assert.deepEqual([deleted, outcome.done], [['late uid-late'], false]);
    await clock.advance(1000);
    assert.equal(outcome.done, true);
  });

  it('waits for the labeled objects of requests as well', async () => {
    stored.set('rolebindings', [{ ...request('orphan'), kind: 'RoleBinding' }]);
    const { outcome } = start();
    await clock.advance(10_000);
    assert.equal(outcome.done, false);
    assert.match(said[0] ?? '', /^0 open requests and 1 object of grants remain.*: RoleBinding payments\/orphan$/);
    assert.deepEqual(
      [...new Set(lists.map(({ labelSelector }) => labelSelector))],
      [undefined, 'access.drawbridge.dev/request'],
    );
  });

  it('does not wait for objects that are being deleted and grant nothing', async () => {
    const leaving = (kind: string, subjects?: object[]): KubeObject => {
      const { metadata, ...object } = request('orphan');
      const deletionTimestamp = '2026-11-21T09:00:00Z';
      return { ...object, kind, metadata: { ...metadata, deletionTimestamp }, ...(subjects ? { subjects } : {}) };
    };
    stored.set('pods', [leaving('Pod')]);
    stored.set('roles', [leaving('Role')]);
    stored.set('rolebindings', [leaving('RoleBinding', [{ kind: 'User', name: 'alice' }])]);
    const { outcome } = start();
    await clock.advance(10_000);
    assert.equal(outcome.done, false);
    assert.match(said[0] ?? '', /^0 open requests and 1 object of grants remain.*: RoleBinding payments\/orphan$/);
    stored.set('rolebindings', [leaving('RoleBinding')]);
    await clock.advance(4000);
    assert.equal(outcome.done, true);
  });

  it('does not treat an API without an answer as empty', async () => {
    fault = new ApiError(503, 'ServiceUnavailable', 'etcd is away');
    const { outcome } = start();
    await clock.advance(10_000);
    assert.deepEqual([outcome.done, said[0]], [false, 'retrying: etcd is away']);
    fault = undefined;
    await clock.advance(4000);
    assert.equal(outcome.done, true);
  });

  it('stops after its time limit, and reports the remaining objects and the remedy', async () => {
    stored.set('podaccessrequests', [request('stuck')]);
    const { outcome } = start({ timeoutMs: 5000 });
    await clock.advance(6000);
    assert.match(outcome.error?.message ?? '', /^not finished after 5 s: 1 open request and .*payments\/stuck;/);
  });
});

import assert from 'node:assert/strict';
import type { AccessKind } from '../../../../src/access/access-kind.ts';
import { statusOf } from '../../../../src/access/lifecycle/status.ts';
import { StatusWriter } from '../../../../src/access/lifecycle/status-writer.ts';
import type { RequestView } from '../../../../src/access/stores/access-views.ts';
import { podAccessRequests } from '../../../../src/api/access/pod-access.ts';
import type { RequestStatus } from '../../../../src/api/access/status.ts';
import type { Client } from '../../../../src/kube/client.ts';
import { podRequestManifest } from '../../../support/access-objects.ts';
import { requestView } from '../../../support/request-views.ts';
import { SimulatedClock } from '../../../support/simulated-clock.ts';

const { signal } = new AbortController();

describe('the writer of statuses', () => {
  let stored: RequestView | undefined;
  const sent: unknown[] = [];
  const owed = { is: 'reviewed', approval: { state: 'ReviewOwed' } } as const;
  beforeEach(() => {
    stored = requestView();
    sent.length = 0;
  });

  const writerAnswering = (resourceVersion: string): StatusWriter => {
    const metadata = { uid: 'r-1', resourceVersion, creationTimestamp: '2026-11-21T09:00:00Z' };
    const manifest = podRequestManifest();
    const client: Pick<Client, 'mergePatch'> = {
      mergePatch: (_resource, _name, patch) => {
        sent.push(patch);
        return Promise.resolve({ ...manifest, metadata: { ...manifest.metadata, ...metadata } });
      },
    };
    const kind = {
      requestResource: podAccessRequests,
      requestKind: 'PodAccessRequest',
      requests: { get: () => stored },
    } as unknown as AccessKind;
    return new StatusWriter({ client: client as Client, kind, clock: new SimulatedClock() });
  };
  const { key } = requestView();

  it('sends each write with the resourceVersion and uid of the decision as preconditions', async () => {
    await writerAnswering('101').show(requestView(), owed, signal);
    const { status, ...preconditions } = sent[0] as { status: object };
    assert.deepEqual(preconditions, { metadata: { resourceVersion: '100', uid: 'r-1' } });
    assert.deepEqual((status as RequestStatus).approval?.state, 'ReviewOwed');
  });

  it('sends nothing that the status shows already', async () => {
    const writer = writerAnswering('101');
    const shown = requestView(statusOf(requestView(), owed, 0) as Partial<RequestView>);
    assert.equal(await writer.show(shown, owed, signal), shown);
    assert.deepEqual(sent, []);
  });

  it('does not act twice on what a store still shows after a write', async () => {
    const writer = writerAnswering('101');
    const written = await writer.show(requestView(), owed, signal);
    assert.equal(writer.latest(key), written);
    stored = requestView({ resourceVersion: '101' });
    assert.equal(writer.latest(key), stored);
    stored = requestView({ resourceVersion: '99' });
    assert.equal(writer.latest(key), stored, 'what has been seen in a store is not remembered any longer');
  });

  it('compares resourceVersions as numbers', async () => {
    const writer = writerAnswering('1000');
    stored = requestView({ resourceVersion: '999' });
    const written = await writer.show(stored, owed, signal);
    assert.equal(writer.latest(key), written);
  });

  it('returns no request that the store has lost', async () => {
    const writer = writerAnswering('101');
    await writer.show(requestView(), owed, signal);
    stored = undefined;
    assert.equal(writer.latest(key), undefined);
  });

  it('ignores answers about another object or a forgotten one', async () => {
    const writer = writerAnswering('101');
    await writer.show(requestView(), owed, signal);
    for (const resourceVersion of ['99', '102']) {
      stored = requestView({ uid: 'r-2', resourceVersion });
      assert.equal(writer.latest(key), stored);
    }
    await writer.show(requestView(), owed, signal);
    writer.forget(key);
    stored = requestView();
    assert.equal(writer.latest(key), stored);
  });
});

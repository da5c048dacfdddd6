import assert from 'node:assert/strict';
import type { AccessKind } from '../../../../src/access/access-kind.ts';
import { StatusWriter } from '../../../../src/access/life/status-writer.ts';
import { podAccessRequests } from '../../../../src/api/access/pod-access.ts';
import type { Client } from '../../../../src/kube/client.ts';
import { podRequestManifest } from '../../../support/access-objects.ts';
import { requestView } from '../../../support/request-views.ts';

const { signal } = new AbortController();

describe('the writer of statuses', () => {
  const writerAnswering = (resourceVersion: string, sent: unknown[] = []): StatusWriter => {
    const metadata = { uid: 'r-1', resourceVersion, creationTimestamp: '2026-11-21T09:00:00Z' };
    const manifest = podRequestManifest();
    const client: Pick<Client, 'mergePatch'> = {
      mergePatch: (_resource, _name, patch) => {
        sent.push(patch);
        return Promise.resolve({ ...manifest, metadata: { ...manifest.metadata, ...metadata } });
      },
    };
    const kind: Pick<AccessKind, 'requestResource' | 'requestKind'> = {
      requestResource: podAccessRequests,
      requestKind: 'PodAccessRequest',
    };
    return new StatusWriter(client as Client, kind as AccessKind);
  };

  it('guards each write by the resourceVersion and uid that it was reasoned from', async () => {
    const sent: unknown[] = [];
    const status = { conditions: [], ready: false };
    await writerAnswering('101', sent).write(requestView(), status, signal);
    assert.deepEqual(sent, [{ metadata: { resourceVersion: '100', uid: 'r-1' }, status }]);
  });

  it('lets nobody act twice on what a store still shows after a write', async () => {
    const writer = writerAnswering('101');
    const written = await writer.write(requestView(), { conditions: [], ready: true }, signal);
    assert.equal(writer.latest(requestView({ resourceVersion: '100' })), written);
    const caughtUp = requestView({ resourceVersion: '101' });
    assert.equal(writer.latest(caughtUp), caughtUp);
    const moved = requestView({ resourceVersion: '99' });
    assert.equal(writer.latest(moved), moved, 'what has been seen in a store is not remembered any longer');
  });

  it('compares resourceVersions as numbers', async () => {
    const writer = writerAnswering('1000');
    const written = await writer.write(
      requestView({ resourceVersion: '999' }),
      { conditions: [], ready: true },
      signal,
    );
    assert.equal(writer.latest(requestView({ resourceVersion: '999' })), written);
  });

  it('remembers nothing of another object, nor of one to be forgotten', async () => {
    const writer = writerAnswering('101');
    await writer.write(requestView(), { conditions: [], ready: true }, signal);
    const other = requestView({ uid: 'r-2' });
    assert.equal(writer.latest(other), other);
    writer.forget('r-1');
    const stored = requestView();
    assert.equal(writer.latest(stored), stored);
  });
});

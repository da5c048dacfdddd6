import assert from 'node:assert/strict';
import type { KubeObject } from '../../../src/api/object.ts';
import type { ClusterConnection } from '../../../src/client/cluster-connection.ts';
import type { Context } from '../../../src/client/command.ts';
import { type WaitOptions, waitFor } from '../../../src/client/wait.ts';
import { SimulatedClock } from '../../support/simulated-clock.ts';

const object = {
  apiVersion: 'crds.wizardofoz.co/v1alpha1',
  kind: 'PodAccessRequest',
  metadata: { name: 'a', namespace: 'payments', uid: 'u' },
} as unknown as KubeObject;

/** A connection whose watches have failed for longer than the client waits. */
const lost = {
  program: 'drawbridge',
  where: '-n payments --as=bob',
  watchRefusals: [],
  cluster: {
    watch: () => ({
      store: { failing: { reason: 'ECONNRESET', forMs: 20_001 }, whenSynced: () => new Promise(() => undefined) },
      release: () => undefined,
    }),
  },
} as unknown as ClusterConnection;

describe('a wait that loses its connection', () => {
  const context = {
    io: { terminal: {}, printError: () => undefined },
    clock: new SimulatedClock(),
    signal: new AbortController().signal,
  } as unknown as Context;
  const cases: readonly (readonly [title: string, options: WaitOptions, next: RegExp])[] = [
    [
      'for access has the commands for the same request, because the command itself would create another',
      {},
      /To go on: drawbridge watch pod\/a -n payments --as=bob\. To revoke it: drawbridge revoke pod\/a -n payments --as=bob$/,
    ],
    [
      'for an extension has the command that shows it, because the command itself would add another',
      { extension: 0 },
      /To see it: drawbridge get pod\/a -n payments --as=bob$/,
    ],
  ];
  for (const [title, options, next] of cases) {
    it(title, async () => {
      await assert.rejects(waitFor(context, lost, { type: 'pod', object }, options), (error: Error) => {
        assert.match(error.message, /^lost the watch: ECONNRESET; this does not affect the requests; /);
        assert.match(error.message, next);
        assert.doesNotMatch(error.message, /run the command again/);
        return true;
      });
    });
  }
});

import assert from 'node:assert/strict';
import { type ClientRun, ScriptedCluster } from '../../support/scripted-cluster.ts';
import { summarized } from '../../support/summarized.ts';

const apiVersion = 'crds.wizardofoz.co/v1alpha1';

/** A request of alice as the API server has it. */
export const request = (name: string, status: object = {}, spec: object = {}, metadata: object = {}) => ({
  apiVersion,
  kind: 'PodAccessRequest',
  metadata: { name, namespace: 'payments', uid: `uid-${name}`, resourceVersion: '1', ...metadata },
  spec: { templateName: 'shell', requester: { username: 'alice' }, ...spec },
  status: summarized(status),
});

export const template = (accessConfig: object, fields: object = {}, metadata: object = {}) => ({
  apiVersion,
  kind: 'PodAccessTemplate',
  metadata: { name: 'shell', namespace: 'payments', uid: '5f2c9a1b-0000', generation: 3, ...metadata },
  spec: { accessConfig },
  ...fields,
});

/** Runs commands that make no call, in the tests of the present suite. */
export function withoutCalls(): (...argv: string[]) => Promise<ClientRun> {
  let cluster: ScriptedCluster;
  before(async () => {
    cluster = await ScriptedCluster.open({});
  });
  after(() => cluster.close());
  return async (...argv) => {
    const done = await cluster.run(argv);
    assert.deepEqual(cluster.server.requests, [], 'no call');
    return done;
  };
}

import assert from 'node:assert/strict';
import { testAnnotation } from '../../../src/api/notify/notification-provider.ts';
import type { KubeObject } from '../../../src/api/object.ts';
import type { ClusterConnection } from '../../../src/client/cluster-connection.ts';
import type { Context } from '../../../src/client/command.ts';
import { notifyTest } from '../../../src/client/commands/notify.ts';
import { own } from '../../../src/kit/json-value.ts';
import type { Answer, ScriptedRequest } from '../../support/scripted-apiserver.ts';
import { answering, type Fault, ScriptedCluster } from '../../support/scripted-cluster.ts';
import { SimulatedClock } from '../../support/simulated-clock.ts';

const provider = (fields: object = {}) => ({
  apiVersion: 'access.drawbridge.dev/v1alpha1',
  kind: 'NotificationProvider',
  metadata: { name: 'chat', namespace: 'payments', uid: 'u', resourceVersion: '1' },
  spec: { type: 'Slack' },
  ...fields,
});

const idIn = (patch: ScriptedRequest | undefined): unknown =>
  own(own(own(patch?.body, 'metadata'), 'annotations'), testAnnotation);

describe('notify test', () => {
  let cluster: ScriptedCluster;
  const open = async (fault?: Fault, providers: readonly object[] = [provider()]): Promise<void> => {
    await cluster?.close();
    cluster = await ScriptedCluster.open({ notificationproviders: providers }, fault);
  };
  after(() => cluster.close());

  /** A server that tests a provider as soon as the client watches it. */
  const sink = (delivered: boolean, answer: string): Fault => {
    const answerWatch = ({ watch }: ScriptedRequest, to: Answer): boolean => {
      if (!watch) return false;
      const lastTest = { id: idIn(cluster.writes[0]), at: '2030-01-01T00:00:00Z', delivered, answer };
      to.open();
      const { metadata } = provider();
      to.event('MODIFIED', provider({ metadata: { ...metadata, resourceVersion: '2' }, status: { lastTest } }));
      return true;
    };
    return answerWatch;
  };

  it('prints what the sink answered, after one write: an annotation with a new value', async () => {
    await open(sink(true, '200 ok'));
    const { code, stdout } = await cluster.run(['notify', 'test', 'chat']);
    assert.deepEqual([code, stdout], [0, 'delivered: 200 ok\n']);
    assert.equal(cluster.writes.length, 1);
    assert.match(String(idIn(cluster.writes[0])), /^[0-9a-f-]{36}$/);
    assert.match(cluster.writes[0]?.path ?? '', /\/namespaces\/payments\/notificationproviders\/chat$/);
  });

  it('exits with 1 if the message was not delivered', async () => {
    await open(sink(false, '404 no_service'));
    const { code, stdout } = await cluster.run(['notify', 'test', 'chat']);
    assert.deepEqual([code, stdout], [1, 'not delivered: 404 no_service\n']);
  });

  it('prints the provider with -o json, and exits with 1 also then', async () => {
    await open(sink(false, '404 no_service'));
    const { code, stdout } = await cluster.run(['notify', 'test', 'chat', '-o', 'json']);
    assert.equal(code, 1);
    assert.equal(own(own(own(JSON.parse(stdout), 'status'), 'lastTest'), 'answer'), '404 no_service');
  });

  it('waits for the answer to its own test', async () => {
    const before = { id: 'earlier', at: '2029-01-01T00:00:00Z', delivered: true, answer: '200 earlier' };
    await open(sink(false, '500 now'), [provider({ status: { lastTest: before } })]);
    assert.equal((await cluster.run(['notify', 'test', 'chat'])).stdout, 'not delivered: 500 now\n');
  });

  it('completes the names of providers', async () => {
    await open();
    assert.equal((await cluster.run(['__complete', 'notify', 'test', 'c'])).stdout, 'chat\n:4\n');
  });

  it('names the feature of a kind that the cluster does not serve', async () => {
    await open(answering('/chat', 404, { kind: 'Status', code: 404, message: 'page not found' }, 'PATCH'));
    const { code, stderr } = await cluster.run(['notify', 'test', 'chat']);
    assert.equal(code, 1);
    assert.match(stderr, /install the feature of the command \(inventory, binding, notify, or/);
  });

  it('says after 75 s without an answer that the feature may not run, and what to check', async () => {
    const clock = new SimulatedClock();
    const status = { conditions: [{ type: 'Ready', status: 'False', reason: 'SecretNotFound', message: 'no Secret' }] };
    const stored = { key: 'payments/chat', object: provider({ status }) as unknown as KubeObject };
    const connection = {
      namespace: 'payments',
      program: 'kubectl drawbridge',
      where: '-n payments',
      watchRefusals: [],
      cluster: {
        client: { mergePatch: async () => stored.object },
        watch: () => ({
          store: {
            list: () => [stored],
            whenSynced: async () => undefined,
            subscribe: (listener: (event: object) => void) => listener({ type: 'added', now: stored }),
          },
          release: () => undefined,
        }),
      },
    } as unknown as ClusterConnection;
    const context = {
      args: { positionals: ['chat'], text: () => undefined },
      io: { terminal: {}, print: () => assert.fail('nothing to print'), printError: () => undefined },
      clock,
      signal: new AbortController().signal,
      connect: async () => connection,
    } as unknown as Context;
    const failed = assert.rejects(
      notifyTest.run(context),
      /^Problem: no answer within 75 s \(its condition Ready: no Secret\); the feature notify may not run: .*features\.notify.* To try again: kubectl drawbridge notify test chat -n payments$/,
    );
    await clock.advance(76_000);
    await failed;
  });
});

import assert from 'node:assert/strict';
import { consumerKinds } from '../../../src/api/binding/kinds.ts';
import { apiServiceBindings, apiServiceExports, boundSchemas } from '../../../src/api/binding/names.ts';
import { customResourceDefinitions } from '../../../src/api/resources.ts';
import { consumerCrd } from '../../../src/binding/consumer-crds.ts';
import { bindingControllers } from '../../../src/binding/controllers.ts';
import type { LeaderGate } from '../../../src/engine/leader-gate.ts';
import { Manager } from '../../../src/engine/manager.ts';
import { noLog } from '../../../src/observe/log.ts';
import { depsOf } from '../../support/binding/deps.ts';
import { conditionsOf } from '../../support/binding/memory-stage.ts';
import { boundSchemaManifest, exportManifest } from '../../support/binding/objects.ts';
import { kubeconfigText, loadYamlOnce, SessionStage } from '../../support/binding/session-stage.ts';
import { until } from '../../support/io.ts';

const metadata = (name: string) => ({ namespace: 'kb-acme', name });

describe('the binding feature', () => {
  let stage: SessionStage;
  let stop: AbortController;
  let ended: Promise<void>;
  let manager: Manager;
  let gate: { lead?: AbortController } & LeaderGate;
  before(loadYamlOnce);

  beforeEach(() => {
    stage = new SessionStage();
    stop = new AbortController();
    manager = new Manager({ clock: stage.clock, log: noLog });
    gate = {
      name: 'kube-bind',
      get leading() {
        return gate.lead?.signal.aborted === false;
      },
      async run(lead, signal) {
        while (!signal.aborted) {
          const term = new AbortController();
          gate.lead = term;
          signal.addEventListener('abort', () => term.abort(), { once: true });
          await lead(term.signal);
        }
      },
    };
    for (const kind of consumerKinds) {
      const status = { conditions: [{ type: 'Established', status: 'True' }] };
      stage.consumer.put(customResourceDefinitions, { ...consumerCrd(kind), status });
    }
    const { cluster } = stage.acme;
    cluster.put(apiServiceExports, exportManifest({ metadata: metadata('kettles') }));
    cluster.put(boundSchemas, boundSchemaManifest({ metadata: metadata('kettles.kitchen.example') }));
    stage.secret(kubeconfigText());
    stage.bind();
    const loops = bindingControllers({
      ...depsOf(stage.consumer, stage.clock, { stores: stage.stores }),
      runningControllers: {
        add: (controller) => manager.add(controller, gate),
        remove: (controller) => manager.remove(controller),
      },
      connect: (credentials) => stage.connect(credentials),
      writeClient: (client) => client,
      version: '0.1.0',
      pollingMs: 15_000,
      bindable: undefined,
      bindableNamespaces: undefined,
    });
    for (const loop of loops) manager.add(loop, gate);
    ended = manager.run(stop.signal);
  });

  afterEach(async () => {
    stop.abort();
    await ended;
  });

  const isHeard = (): boolean =>
    conditionsOf(stage.consumer.find(apiServiceBindings, { name: 'kettles' }))['Heartbeating']?.status === 'True';

  it('closes every session when the leadership is lost, and opens them again with the next', async () => {
    await until(isHeard, 'the first session');
    assert.deepEqual(stage.open, ['first']);
    const loops = manager.status().length;
    const term = gate.lead;
    term?.abort();
    await until(() => gate.lead !== term, 'the next term');
    assert.equal(stage.connections[0]?.closed, true);
    await until(() => stage.open.length === 1 && manager.status().length === loops, 'a new session');
    assert.equal(stage.connections.length, 2);
    assert.ok(!manager.status().some(({ state }) => state === 'restarting'));
  });

  it('leaves nothing open when the last binding is deleted', async () => {
    await until(isHeard, 'the session');
    const watches = stage.consumer.watches;
    stage.unbind();
    await until(() => stage.open.length === 0, 'the end of the session');
    await until(() => manager.status().length === 4, 'the end of its loops');
    assert.ok(stage.consumer.watches < watches);
  });
});

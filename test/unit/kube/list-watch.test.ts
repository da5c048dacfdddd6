import assert from 'node:assert/strict';
import type { KubeObject } from '../../../src/api/object.ts';
import { keyOf } from '../../../src/api/object.ts';
import { pods } from '../../../src/api/resources.ts';
import { staticCredentials } from '../../../src/kube/credentials.ts';
import { type OpenCluster, openCluster } from '../../../src/kube/open-cluster.ts';
import type { Projected, Store, StoreEvent, StoreSpec } from '../../../src/kube/store.ts';
import { until } from '../../support/io.ts';
import { pod, type Script, ScriptedApiserver } from '../../support/scripted-apiserver.ts';
import { SimulatedClock } from '../../support/simulated-clock.ts';

interface PodView extends Projected {
  readonly phase: string;
}

const view = (object: KubeObject): PodView => ({
  key: keyOf(object.metadata),
  uid: object.metadata.uid ?? '',
  resourceVersion: object.metadata.resourceVersion ?? '',
  phase: typeof object['phase'] === 'string' ? object['phase'] : '',
});

describe('list-watch', () => {
  let clock: SimulatedClock;
  let server: ScriptedApiserver;
  let cluster: OpenCluster;

  async function start(script: Script, spec: Partial<StoreSpec<PodView>> = {}): Promise<Watched> {
    clock = new SimulatedClock();
    server = await ScriptedApiserver.start(script);
    cluster = openCluster(staticCredentials({ server: server.url }), { clock, random: () => 0.5 });
    const { store } = cluster.watch({ resource: pods, project: view, ...spec });
    const events: StoreEvent<PodView>[] = [];
    store.subscribe((event) => events.push(event));
    return { store, events, told: () => events.map(tell) };
  }

  afterEach(async () => {
    const closing = cluster.close();
    await server.close();
    await closing;
  });

  it('lists, then follows added, modified and deleted', async () => {
    const { store, told } = await start((request, answer) => {
      if (!request.watch) return answer.list('10', [pod('a', '5'), pod('b', '7')]);
      answer.open();
      answer.event('ADDED', pod('c', '11'));
      answer.event('MODIFIED', pod('a', '12', 'uid-a', { phase: 'Running' }));
      answer.event('DELETED', pod('b', '13'));
    });
    await store.whenSynced();
    await until(() => told().length === 5);
    assert.deepEqual(told(), ['added a 5', 'added b 7', 'added c 11', 'updated a 5>12', 'deleted b']);
    assert.equal(store.get('default/a')?.phase, 'Running');
    assert.deepEqual([...store.list()].map(({ key }) => key).sort(), ['default/a', 'default/c']);
    const [watch] = server.watches;
    assert.equal(watch?.query.get('resourceVersion'), '10');
    assert.equal(watch?.query.get('allowWatchBookmarks'), 'true');
    assert.equal(watch?.query.get('timeoutSeconds'), '300');
  });
});

interface Watched {
  readonly store: Store<PodView>;
  readonly events: StoreEvent<PodView>[];
  readonly told: () => string[];
}

function tell(event: StoreEvent<PodView>): string {
  const name = event.key.replace('default/', '');
  if (event.type === 'added') return `added ${name} ${event.now.resourceVersion}`;
  if (event.type === 'deleted') return `deleted ${name}`;
  return `updated ${name} ${event.before.resourceVersion}>${event.now.resourceVersion}`;
}

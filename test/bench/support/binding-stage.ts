import { type FixtureKind, fixtureKinds } from '../../../sandbox/binding/fixture-kinds.ts';
import { until } from '../../../sandbox/wait.ts';
import { providerNamespaceAnnotation, providerUidAnnotation } from '../../../src/api/binding/names.ts';
import { bindingPlane } from '../../support/binding/planes.ts';
import { BindingStage } from '../../support/binding/stage.ts';
import { Api, type ApiObject, inParallel } from './api.ts';
import { cpuMs } from './stage.ts';

export type SideName = 'consumer' | 'provider';

/** The benchmark's client of one cluster: its own pool, an administrator, and a namespace for bound and unbound objects. */
export interface BenchSide {
  readonly api: Api;
  readonly namespace: string;
}

const crds = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const exportName = 'kitchen';

/** A konnector between two planes with one kind bound, and another kind of the same shape in both that no binding names. */
export class BindingBenchStage {
  readonly consumer: BenchSide;
  readonly provider: BenchSide;
  readonly bound: FixtureKind;
  readonly unbound: FixtureKind;
  readonly #stage: BindingStage;

  private constructor(stage: BindingStage, serviceNamespace: string) {
    const { consumer, backend, namespace } = stage.side;
    this.#stage = stage;
    this.bound = stage.kinds.kettles;
    this.unbound = fixtureKinds(`unbound-${stage.id}.example`, 'Prefixed').kettles;
    this.consumer = { api: new Api(consumer.plane, 'bench', ['system:masters']), namespace };
    this.provider = { api: new Api(backend.provider.plane, 'bench', ['system:masters']), namespace: serviceNamespace };
  }

  static async open(): Promise<BindingBenchStage> {
    await Promise.all([bindingPlane('provider'), bindingPlane('consumer')]);
    const bindings = await BindingStage.open();
    const { consumer, backend, namespace } = bindings.side;
    await consumer.start();
    await bindings.bind(exportName, [bindings.kinds.kettles]);
    // The first object of a namespace waits for the backend; the figure firstOfNamespace measures that.
    const first = { namespace, name: 'first' };
    await bindings.create(bindings.kinds.kettles, first);
    await bindings.whenSynced(bindings.kinds.kettles, first);
    const stage = new BindingBenchStage(bindings, await backend.whenNamespace(namespace));
    await Promise.all([stage.#createFixtures(stage.consumer), stage.#createFixtures(stage.provider)]);
    return stage;
  }

  side(name: SideName): BenchSide {
    return this[name];
  }

  /** Path of the objects of a kind in all namespaces, for watches. */
  everywhere({ inConsumer: { group, version, plural } }: FixtureKind): string {
    return `/apis/${group}/${version}/${plural}`;
  }

  path(side: SideName, { inConsumer: { group, version, plural } }: FixtureKind, name = ''): string {
    return `/apis/${group}/${version}/namespaces/${this[side].namespace}/${plural}${name && `/${name}`}`;
  }

  create(side: SideName, kind: FixtureKind, name: string): Promise<unknown> {
    return this[side].api.call('POST', this.path(side, kind), objectOf(kind, name));
  }

  remove(side: SideName, kind: FixtureKind, name: string): Promise<unknown> {
    return this[side].api.call('DELETE', this.path(side, kind, name));
  }

  /** Writes a status as a controller does. */
  report(side: SideName, kind: FixtureKind, name: string, result: string): Promise<unknown> {
    const status = { result, heat: 100, notes: ['filled', 'switched on'] };
    return this[side].api.call('PATCH', `${this.path(side, kind, name)}/status`, { status });
  }

  /** Adds the finalizer and two annotations of a konnector to an object. */
  addFinalizer(kind: FixtureKind, name: string): Promise<unknown> {
    const annotations = {
      [providerNamespaceAnnotation]: this.provider.namespace,
      [providerUidAnnotation]: '00000000-0000-4000-8000-000000000000',
    };
    return this.#patch(kind, name, { annotations, finalizers: ['bench.example/held'] });
  }

  removeFinalizer(kind: FixtureKind, name: string): Promise<unknown> {
    return this.#patch(kind, name, { finalizers: null });
  }

  /** Creates an object of the bound kind in a new namespace of the consumer. */
  async createInNew(namespace: string, name: string): Promise<void> {
    const { api } = this.consumer;
    await api.call('POST', '/api/v1/namespaces', { metadata: { name: namespace } });
    this.#stage.alsoRemove(namespace);
    const { group, version, plural } = this.bound.inConsumer;
    await api.call('POST', `/apis/${group}/${version}/namespaces/${namespace}/${plural}`, objectOf(this.bound, name));
  }

  /** Resolves once the konnector has sent no call for half a second. */
  async idle(): Promise<void> {
    let lastCalls = -1;
    let since = 0;
    const isIdle = (): boolean => {
      const calls = this.#calls('consumer', 0).length + this.#calls('provider', 0).length;
      if (calls !== lastCalls) since = performance.now();
      lastCalls = calls;
      return performance.now() - since >= 500;
    };
    await until('the konnector to be idle', isIdle, { timeoutMs: 60_000, everyMs: 100 });
  }

  /** The positions in both audit logs, for `writes`. */
  mark(): Readonly<Record<SideName, number>> {
    const { consumer, backend } = this.#stage.side;
    return { consumer: consumer.plane.auditLog.mark(), provider: backend.provider.plane.auditLog.mark() };
  }

  /** Counts the konnector's writes to bound objects on one side since the mark, or to the object `name`. */
  writes(side: SideName, since: Readonly<Record<SideName, number>>, name?: string): number {
    const { plural, group } = this.bound.inConsumer;
    return this.#calls(side, since[side]).filter(
      (call) =>
        call.apiGroup === group &&
        call.resource.split('/')[0] === plural &&
        ['create', 'update', 'patch', 'delete'].includes(call.verb) &&
        (name === undefined || call.name === name),
    ).length;
  }

  /** Processor time of the konnector so far, milliseconds. */
  cpuMs(): Promise<number> {
    return cpuMs(this.#stage.side.consumer.konnector.pid);
  }

  /** Deletes the remaining objects of the unbound kind on one side. */
  async clear(side: SideName): Promise<void> {
    await this[side].api.call('DELETE', this.path(side, this.unbound));
    const isEmpty = async (): Promise<boolean> => {
      const { items } = (await this[side].api.call('GET', `${this.path(side, this.unbound)}?limit=1`)) as {
        items: unknown[];
      };
      return items.length === 0;
    };
    await until('the deletion of the unbound objects', isEmpty, { timeoutMs: 60_000, everyMs: 50 });
  }

  async close(): Promise<void> {
    for (const { api } of [this.consumer, this.provider]) {
      await api.call('DELETE', `${crds}/${this.unbound.crd.metadata.name}`);
      await api.close();
    }
    await this.#stage.close();
  }

  #patch(kind: FixtureKind, name: string, metadata: object): Promise<unknown> {
    return this.consumer.api.call('PATCH', this.path('consumer', kind, name), { metadata });
  }

  /** Counts the konnector's calls on one side since the mark. */
  callsAtRest(side: SideName, since: Readonly<Record<SideName, number>>): RestCalls {
    const calls = this.#allCalls(side, since[side]);
    const watches = calls.filter(({ verb }) => verb === 'watch').length;
    const reviews = calls.filter(isReview).length;
    return { watches, reviews, others: calls.length - watches - reviews };
  }

  #calls(side: SideName, since: number) {
    return this.#allCalls(side, since).filter((call) => call.verb !== 'watch' && !isReview(call));
  }

  #allCalls(side: SideName, since: number) {
    const { consumer, backend } = this.#stage.side;
    const [log, user] =
      side === 'consumer'
        ? [consumer.plane.auditLog, consumer.konnectorUser]
        : [backend.provider.plane.auditLog, `system:serviceaccount:${backend.clusterNamespace}:kube-binder`];
    return log.calls({ user, since });
  }

  async #createFixtures({ api }: BenchSide): Promise<void> {
    await api.call('POST', crds, this.unbound.crd);
    const served = (): Promise<boolean> =>
      api.call('GET', this.everywhere(this.unbound)).then(
        () => true,
        () => false,
      );
    await until('the unbound kind', served, { timeoutMs: 30_000, everyMs: 50 });
    await api.warm();
    await inParallel(64, () => api.call('GET', this.everywhere(this.unbound)));
  }
}

/** Calls of a konnector that has nothing to do. */
export interface RestCalls {
  readonly watches: number;
  /** Reviews of its own permissions, which show withdrawn ones. */
  readonly reviews: number;
  readonly others: number;
}

const isReview = ({ resource }: { readonly resource: string }): boolean => resource === 'selfsubjectrulesreviews';

/** True once the konnector has synced the consumer object: it has the finalizer and the recorded copy. */
export const isSynced = ({ metadata }: ApiObject): boolean =>
  metadata.annotations?.[providerUidAnnotation] !== undefined;

function objectOf({ inConsumer: { group, version, kind } }: FixtureKind, name: string) {
  return {
    apiVersion: `${group}/${version}`,
    kind,
    metadata: { name, labels: { app: 'kettle' } },
    spec: { heat: 100, note: 'for the evening', tags: { room: 'kitchen', owner: 'team' } },
  };
}

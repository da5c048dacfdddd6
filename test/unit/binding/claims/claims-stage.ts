import assert from 'node:assert/strict';
import {
  apiServiceBindings,
  apiServiceNamespaces,
  bindGroup,
  bindVersion,
  boundSchemas,
} from '../../../../src/api/binding/names.ts';
import type { PermissionClaim } from '../../../../src/api/binding/permission-claim.ts';
import { type KubeObject, keyOf, type ObjectMeta } from '../../../../src/api/object.ts';
import { customResourceDefinitions, namespaces, secrets } from '../../../../src/api/resources.ts';
import { openClaims } from '../../../../src/binding/claims/open-claims.ts';
import { ownerReferenceOf } from '../../../../src/binding/service-binding/owner.ts';
import type { ProviderSession } from '../../../../src/binding/sessions/provider-session.ts';
import { type ExportView, openProviderStores } from '../../../../src/binding/stores/provider-stores.ts';
import type { Syncer, SyncMode } from '../../../../src/binding/sync-engine/syncer.ts';
import type { Cluster } from '../../../../src/kube/cluster.ts';
import type { RecordedEvent } from '../../../../src/kube/event-object.ts';
import { type Log, type LogFields, noLog } from '../../../../src/observe/log.ts';
import { createMetrics } from '../../../../src/observe/metrics.ts';
import { depsOf } from '../../../support/binding/deps.ts';
import { MemoryCluster, type Stored } from '../../../support/binding/memory-cluster.ts';
import { bindingManifest, boundSchemaManifest } from '../../../support/binding/objects.ts';
import { exportOf } from '../../../support/binding/views.ts';
import { SimulatedClock } from '../../../support/simulated-clock.ts';

export const claimOn = (resource: string, selector: PermissionClaim['selector']): PermissionClaim => ({
  group: '',
  resource,
  selector,
});
export const secretsOf = (app: string): PermissionClaim =>
  claimOn('secrets', { labelSelector: { matchLabels: { app } } });

export const secretIn = (
  namespace: string,
  name: string,
  fields: { labels?: Record<string, string>; data?: Record<string, string>; [field: string]: unknown } = {},
): KubeObject => {
  const { labels = { app: 'kettle' }, ...rest } = fields;
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { namespace, name, labels },
    type: 'Opaque',
    data: { password: 'c2VjcmV0' },
    ...rest,
  };
};

export const byReference = claimOn('secrets', {
  references: [
    {
      group: 'kitchen.example',
      resource: 'kettles',
      jsonPath: { name: 'spec.refs.#.name', namespace: 'spec.refs.#.namespace' },
    },
  ],
});
export const kettle = (refs: readonly unknown[], namespace = 'team-a') => ({
  apiVersion: 'kitchen.example/v1',
  kind: 'Kettle',
  metadata: { namespace, name: 'k' },
  spec: { refs },
});

/** Two clusters in memory, and the claims of one export between them. Namespace team-a has a service namespace. */
export class ClaimsStage {
  readonly clock = new SimulatedClock();
  readonly consumer = new MemoryCluster(this.clock);
  readonly provider = new MemoryCluster(this.clock);
  readonly metrics = createMetrics();
  readonly events: RecordedEvent[] = [];
  /** The logged writes. */
  readonly logged: LogFields[] = [];
  /** The problems at each notification of a change. */
  readonly told: (readonly string[])[] = [];
  /** The cluster that the session watches. Default: the provider. */
  watched: Pick<Cluster, 'watch'> = this.provider;
  identity: string | undefined = 'uid-of-kb-acme';
  /** Whether the binding of that name may use the same provider. */
  leadHere = (_name: string): boolean => true;
  readonly #session: { stop: AbortController; runs: Promise<void>[]; claims: Syncer }[] = [];

  constructor() {
    this.namespace('team-a');
    this.serviceNamespace('team-a');
    this.provider.put(boundSchemas, boundSchemaManifest());
    const binding = bindingManifest();
    this.consumer.put(apiServiceBindings, binding);
    this.define({
      ownerReferences: [ownerReferenceOf({ name: binding.metadata.name, uid: binding.metadata.uid ?? '' })],
    });
  }

  /** The CRD of the bound kind. */
  define(metadata: Partial<ObjectMeta>): void {
    this.consumer.put(customResourceDefinitions, {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: 'kettles.kitchen.example', ...metadata },
      spec: { scope: 'Namespaced' },
      status: { conditions: [{ type: 'Established', status: 'True' }] },
    });
  }

  /** Consumer namespaces for which a service namespace was requested. */
  get requested(): string[] {
    return this.provider.writes.filter((write) => write.startsWith('create apiservicenamespaces'));
  }

  get claims(): Syncer {
    const [last] = this.#session.slice(-1);
    assert.ok(last);
    return last.claims;
  }

  async open(
    claims: readonly PermissionClaim[],
    fields: Partial<ExportView> = {},
    mode: SyncMode = 'sync',
  ): Promise<void> {
    const { clock, consumer, provider, metrics } = this;
    const exported = exportOf({ ...fields, permissionClaims: claims });
    const session: ProviderSession = {
      id: 'a1',
      clusterNamespace: 'kb-acme',
      cluster: {
        ...provider,
        client: provider.client,
        identity: () => provider.identity(),
        close: () => provider.close(),
        watch: (spec) => this.watched.watch(spec),
      },
      client: provider.client,
      stores: openProviderStores(provider, 'kb-acme').stores,
      clusterNamespaceUid: this.identity,
      refusedWatches: () => [],
      state: { kind: 'synced' },
    };
    const deps = depsOf(consumer, clock, {
      ownNamespaces: new Set(['drawbridge-system']),
      events: { record: (event) => void this.events.push(event), close: () => Promise.resolve() },
      log: this.#log(),
      metrics,
    });
    // The export controller opens claims only when these stores are synced.
    await this.settle();
    const opened = openClaims(
      {
        session,
        exported,
        mode,
        mayShareProvider: ({ name }) => this.leadHere(name),
        random: () => 0.5,
        onChange: () => this.told.push(this.claims.problems()),
      },
      deps,
    );
    const stop = new AbortController();
    const runs = opened.controllers.map((controller) => controller.run(stop.signal));
    this.#session.push({ stop, runs, claims: opened });
    await this.settle();
  }

  #log(): Log {
    const info: Log['info'] = (_, fields = {}) => void this.logged.push(fields);
    return { ...noLog, child: () => ({ ...noLog, info }) };
  }

  async close(): Promise<void> {
    for (const { stop, runs, claims } of this.#session.splice(0)) {
      stop.abort();
      await Promise.all(runs);
      claims.close();
    }
  }

  /** Runs everything that is due. */
  async settle(ms = 50): Promise<void> {
    for (let i = 0; i < 10; i++) await this.clock.settle();
    await this.clock.advance(ms);
    for (let i = 0; i < 10; i++) await this.clock.settle();
  }

  namespace(name: string): void {
    this.consumer.put(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  }

  /** Its uid identifies the cluster. */
  consumerCluster(): { readonly uid: string } {
    const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'kube-system' } };
    return this.consumer.put(namespaces, namespace).metadata;
  }

  /** Acts as the provider's backend: puts an APIServiceNamespace with its status. */
  serviceNamespace(name: string, serviceNamespace = `kb-acme-${name}`): void {
    this.provider.put(apiServiceNamespaces, {
      apiVersion: `${bindGroup}/${bindVersion}`,
      kind: 'APIServiceNamespace',
      metadata: { namespace: 'kb-acme', name },
      spec: {},
      status: { namespace: serviceNamespace },
    });
  }

  up(name = 'creds', resource = secrets, namespace = 'kb-acme-team-a'): Stored | undefined {
    return this.provider.find(resource, { namespace, name });
  }

  down(name = 'creds', resource = secrets, namespace = 'team-a'): Stored | undefined {
    return this.consumer.find(resource, { namespace, name });
  }

  /** Another client changes the object. */
  change(side: 'consumer' | 'provider', key: string, fields: Readonly<Record<string, unknown>>): void {
    const [namespace = '', name = ''] = key.split('/');
    const present = this[side].find(secrets, { namespace, name });
    assert.ok(present, `${side} ${keyOf({ namespace, name })}`);
    this[side].put(secrets, { ...present, ...fields });
  }

  async metric(series: string): Promise<number | undefined> {
    const line = (await this.metrics.expose()).split('\n').find((one) => one.startsWith(`${series} `));
    return line === undefined ? undefined : Number(line.slice(series.length + 1));
  }
}

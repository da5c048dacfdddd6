import { boundSchemaName } from '../../api/binding/group-resource.ts';
import { keyOf } from '../../api/object.ts';
import type { BindingDeps } from '../deps.ts';
import { isOwnedBy } from '../service-binding/owner.ts';
import type { ProviderSession } from '../sessions/provider-session.ts';
import type { ExportView } from '../stores/provider-stores.ts';
import { ConsumerObjects, consumerResource, syncVersion } from '../sync/consumer-objects.ts';

/** The consumer's namespaces with bound objects of one export. */
export class UsedNamespaces {
  readonly #kinds: readonly ConsumerObjects[];

  constructor(kinds: readonly ConsumerObjects[]) {
    this.#kinds = kinds;
  }

  /** False while the objects are not listed. */
  has(namespace: string): boolean {
    return this.#kinds.some((objects) => objects.inNamespace(namespace).length > 0);
  }

  /** Calls back with each namespace that has a bound object, now or later; may repeat. */
  subscribe(listener: (namespace: string) => void): () => void {
    const used = new Set<string>();
    const unsubscribes = this.#kinds.map((objects) =>
      objects.subscribe((event) => {
        if (event.type === 'updated') return;
        const { namespace = '' } = ('now' in event ? event.now : event.before).object.metadata;
        if (event.type === 'deleted') {
          if (!this.has(namespace)) used.delete(namespace);
        } else if (!used.has(namespace)) {
          used.add(namespace);
          listener(namespace);
        }
      }),
    );
    return () => {
      for (const unsubscribe of unsubscribes) unsubscribe();
    };
  }

  close(): void {
    for (const objects of this.#kinds) objects.close();
  }
}

/**
 * Watches the bound objects of the export's namespaced kinds, but only of kinds whose CRD the
 * binding owns: a provider can name any CRD, and must not get copies into namespaces that do not
 * use its API. The caller closes the result.
 */
export function openUsedNamespaces(session: ProviderSession, exported: ExportView, deps: BindingDeps): UsedNamespaces {
  const binding = deps.stores.bindings.get(exported.name);
  const kinds = exported.resources.flatMap((resource) => {
    const crd = boundSchemaName(resource);
    const schema = session.stores.schemas.get(keyOf({ namespace: session.clusterNamespace, name: crd }));
    const version = schema && syncVersion(schema, exported);
    const owners = deps.stores.crds.get(crd)?.ownerReferences;
    if (!version || schema.scope !== 'Namespaced' || !binding || !isOwnedBy(owners, binding)) return [];
    const { consumer: cluster, stores } = deps;
    return [new ConsumerObjects({ cluster, crds: stores.crds, crd, resource: consumerResource(schema, version.name) })];
  });
  return new UsedNamespaces(kinds);
}

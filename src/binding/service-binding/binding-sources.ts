import type { Emit, Source } from '../../engine/source.ts';
import { fromEach, fromSubscription } from '../../engine/sources/from-subscription.ts';
import type { ProviderSession, Sessions } from '../sessions/provider-session.ts';
import { bySecret, type ConsumerStores } from '../stores/consumer-stores.ts';
import { bySchema } from '../stores/provider-stores.ts';
import { owningBindings } from './owner.ts';
import type { RunningSyncers } from './running-syncers.ts';

/** All that a binding's reconciler looks at. */
export function bindingSources(sessions: Sessions, syncers: RunningSyncers, stores: ConsumerStores): Source[] {
  const bindingsOf = (secret: string): string[] => stores.bindings.byIndex(bySecret, secret).map(({ key }) => key);
  return [
    fromSubscription('binding', stores.bindings, ({ key }) => [key]),
    fromSubscription('crd', stores.crds, (event) => {
      const owners = 'now' in event ? event.now.ownerReferences : event.before.ownerReferences;
      const exporting = [...sessions.list()].flatMap((session) => exportsOf(session, event.key));
      return [...owningBindings(owners), ...exporting];
    }),
    fromSubscription('session', sessions, bindingsOf),
    fromEach('session', sessions, (session, emit) =>
      watchSession(session, emit, () => [...sessions.secretsOf(session)].flatMap(bindingsOf)),
    ),
    fromSubscription('syncers', syncers, (binding) => [binding]),
  ];
}

function watchSession(session: ProviderSession, emit: Emit, bindings: () => Iterable<string>): () => void {
  const { exports, schemas, exportRequests, clusterBindings } = session.stores;
  const named = (event: { readonly now?: { readonly name: string }; readonly before?: { readonly name: string } }) =>
    (event.now ?? event.before)?.name ?? '';
  const unsubscribes = [
    exports.subscribe((event) => emit(named(event), 'export')),
    exportRequests.subscribe((event) => emit(named(event), 'request')),
    schemas.subscribe((event) => {
      for (const name of exportsOf(session, named(event))) emit(name, 'schema');
    }),
    clusterBindings.subscribe((event) => {
      // A heartbeat changes it every few minutes, and nothing here.
      if (event.type === 'updated' && event.before.providerPrettyName === event.now.providerPrettyName) return;
      for (const binding of bindings()) emit(binding, 'provider');
    }),
  ];
  return () => {
    for (const unsubscribe of unsubscribes) unsubscribe();
  };
}

/** Names of the exports, and so of the bindings, that a BoundSchema or CustomResourceDefinition is about. */
function exportsOf({ stores }: ProviderSession, schemaName: string): string[] {
  return stores.exports.byIndex(bySchema, schemaName).map(({ name }) => name);
}

import type { Source } from '../../engine/source.ts';
import { fromSubscription } from '../../engine/sources/from-subscription.ts';
import { owningBindings } from '../service-binding/owner.ts';
import type { ProviderSession, Sessions } from '../sessions/provider-session.ts';
import { bySecret, type ConsumerStores } from '../stores/consumer-stores.ts';
import { bySchema } from '../stores/provider-stores.ts';

/** All that the exports of one session depend on. */
export function exportSources(session: ProviderSession, sessions: Sessions, consumer: ConsumerStores): Source[] {
  const { exports, schemas } = session.stores;
  const keyOf = (binding: string): string => `${session.clusterNamespace}/${binding}`;
  const exporting = (schema: string): string[] => exports.byIndex(bySchema, schema).map(({ key }) => key);
  return [
    fromSubscription('export', exports, ({ key }) => [key]),
    fromSubscription('schema', schemas, (event) => exporting('now' in event ? event.now.name : event.before.name)),
    fromSubscription('binding', consumer.bindings, ({ key }) => [keyOf(key)]),
    fromSubscription('crd', consumer.crds, (event) => {
      const { ownerReferences } = 'now' in event ? event.now : event.before;
      return [...exporting(event.key), ...owningBindings(ownerReferences).map(keyOf)];
    }),
    fromSubscription('session', sessions, (secret) =>
      consumer.bindings.byIndex(bySecret, secret).map(({ key }) => keyOf(key)),
    ),
  ];
}

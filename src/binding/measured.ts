import { clusterBindingName } from '../api/binding/names.ts';
import { keyOf } from '../api/object.ts';
import { type Clock, parseTime } from '../kit/clock.ts';
import type { BindingDeps } from './deps.ts';
import { bindingMetrics } from './metrics.ts';
import type { ProviderSession } from './sessions/provider-session.ts';
import { openSyncer } from './sync/open-syncer.ts';
import type { Syncer, SyncerOptions } from './sync/syncer.ts';

/** A syncer that shows in the metrics for as long as it is open. */
export function openMeasuredSyncer(options: SyncerOptions, deps: BindingDeps): Syncer {
  const { session, exported, schema } = options;
  const metrics = bindingMetrics(deps.metrics);
  const resource = schema.name;
  const syncer = openSyncer({ ...options, observer: metrics.observer(resource) }, deps);
  const counted = { binding: exported.name, resource };
  const stops = [
    metrics.watching({ session: session.id, side: 'provider', resource }, () => syncer.watchAgeMs),
    metrics.objects({ ...counted, side: 'consumer' }, () => syncer.size().objects),
    metrics.objects({ ...counted, side: 'provider' }, () => syncer.size().copies),
  ];
  return {
    controllers: syncer.controllers,
    resync: () => syncer.resync(),
    allowDeletes: () => syncer.allowDeletes(),
    held: () => syncer.held(),
    problems: () => syncer.problems(),
    served: () => syncer.served(),
    size: () => syncer.size(),
    get watchAgeMs() {
      return syncer.watchAgeMs;
    },
    close() {
      for (const stop of stops) stop();
      syncer.close();
    },
  };
}

/** How long ago each session's heartbeat was written, as its provider has it; sessions without one are left out. */
export function* heartbeatAges(
  sessions: Iterable<ProviderSession>,
  clock: Clock,
): Iterable<{ readonly session: string; readonly ageMs: number }> {
  for (const { id, clusterNamespace, stores } of sessions) {
    const found = stores.clusterBindings.get(keyOf({ namespace: clusterNamespace, name: clusterBindingName }));
    const beatMs = parseTime(found?.lastHeartbeatTime ?? '');
    if (beatMs !== undefined) yield { session: id, ageMs: Math.max(0, clock.now() - beatMs) };
  }
}

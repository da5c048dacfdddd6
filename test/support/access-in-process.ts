import { accessControllers } from '../../src/access/controllers.ts';
import { OwedReviews, reviewsSpec } from '../../src/access/emergency/owed-reviews.ts';
import { withdrawalSpec } from '../../src/access/gateway-withdrawal.ts';
import { GrantQuota } from '../../src/access/lifecycle/grant-quota.ts';
import { noLimits } from '../../src/access/policy/limits.ts';
import { openAccessStores } from '../../src/access/stores/access-stores.ts';
import type { AuditRecord } from '../../src/audit/record.ts';
import { Manager } from '../../src/engine/manager.ts';
import type { Clock } from '../../src/kit/clock.ts';
import { eventRecorder } from '../../src/kube/event-recorder.ts';
import { fileCredentials } from '../../src/kube/kubeconfig.ts';
import { openCluster } from '../../src/kube/open-cluster.ts';
import { noLog } from '../../src/observe/log.ts';
import { createMetrics } from '../../src/observe/metrics.ts';
import { policiesInForce } from './policies.ts';

export interface AccessInProcess {
  /** The records that the controllers wrote to the audit journal, oldest first. */
  readonly records: readonly AuditRecord[];
  stop(): Promise<void>;
}

/** The controllers of access, without webhooks, in this process, for tests with an injected clock. */
export async function runAccess(kubeconfig: string, clock: Clock): Promise<AccessInProcess> {
  const records: AuditRecord[] = [];
  const journal = {
    available: true,
    async append(record: AuditRecord): Promise<void> {
      records.push(record);
    },
  };
  const log = noLog;
  const cluster = openCluster(await fileCredentials(kubeconfig), { clock });
  const { client } = cluster;
  const stores = openAccessStores(cluster);
  const events = eventRecorder({ client, clock, log, controller: 'drawbridge.dev/access', instance: 'test' });
  const manager = new Manager({ clock, log });
  const quota = new GrantQuota({ stores, limits: noLimits, clock });
  const namespace = 'drawbridge-system';
  const reviews = new OwedReviews({
    store: cluster.watch(reviewsSpec(namespace)).store,
    client,
    namespace,
    clock,
  });
  const given = {
    grantable: [],
    serverNamespace: 'drawbridge-system',
    trustExistingTemplates: false,
    accessPods: 'confined' as const,
    certificates: 'files' as const,
    policies: policiesInForce,
  };
  const deps = {
    client,
    quota,
    reviews,
    stores,
    withdrawals: cluster.watch(withdrawalSpec('drawbridge-system')).store,
    journal,
    events,
    clock,
    log,
    metrics: createMetrics(),
    ...given,
  };
  for (const controller of accessControllers(deps)) manager.add(controller);
  const stop = new AbortController();
  const ended = manager.run(stop.signal);
  return {
    records,
    async stop() {
      stop.abort();
      await ended;
      await events.close();
      await cluster.close();
    },
  };
}

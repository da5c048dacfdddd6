import type { ServedFeatures } from '../admission/app.ts';
import type { ServingCertificate } from '../admission/certificate.ts';
import type { ReviewPorts } from '../admission/ports.ts';
import type { OpenJournal } from '../audit/journal.ts';
import type { Config, FeatureName } from '../config.ts';
import { alwaysLeading, type LeaderGate } from '../engine/leader-gate.ts';
import type { Manager } from '../engine/manager.ts';
import type { Runnable } from '../engine/supervisor.ts';
import { systemClock } from '../kit/clock.ts';
import type { Client } from '../kube/client.ts';
import type { Cluster } from '../kube/cluster.ts';
import type { Credentials } from '../kube/credentials.ts';
import { type EventRecorder, eventRecorder } from '../kube/event-recorder.ts';
import { type LeaseGateOptions, leaseGate } from '../kube/lease-gate.ts';
import { serviceAccountOf } from '../kube/service-account.ts';
import type { WatchOptions } from '../kube/shared-stores.ts';
import type { Projected, Store } from '../kube/store.ts';
import { STALE_MS } from '../kube/store.ts';
import type { HealthCheck } from '../observe/health.ts';
import type { Log } from '../observe/log.ts';
import type { CounterMetric, Metrics } from '../observe/metrics.ts';

/** Of all features and of `serve`. */
export const clock = systemClock;

/** What `--features` can name. */
export interface Feature {
  readonly name: FeatureName;
  /**
   * For quick calls (`PoolName`) to the own API server. A process uses the largest number of its
   * features; other calls have their own connections.
   */
  readonly connections: number;
  /** That is, the serving certificate and the audit journal. */
  readonly servesHttps: boolean;
  /**
   * At once, so that a wrong file name fails the start (a CodedError). What it returns rejects with
   * `PortUnavailable`, or as `credentials`.
   */
  readFiles(config: Config): (host: Host) => OpenFeature | Promise<OpenFeature>;
}

/** What the features of a process share. */
export interface Host {
  readonly config: Config;
  readonly cluster: Cluster;
  /** For `cluster`. */
  readonly credentials: Credentials;
  readonly metrics: Metrics;
  /** Refused lists and watches, as `watchRefusalsMetric`. */
  readonly watchRefusals: CounterMetric;
  readonly log: Log;
  readonly manager: Pick<Manager, 'add' | 'remove'>;
  /** For features with `servesHttps`; throws without any. */
  readonly serving: () => Serving;
  /** Aborts when the process must stop. */
  readonly signal: AbortSignal;
}

/** Its stores and ports are open. `serve` opens its webhooks, and runs its controllers. */
export interface OpenFeature {
  /** No two features share a Lease, so another replica may lead another feature. */
  readonly gate: LeaderGate;
  /** In start order. */
  readonly controllers: readonly Runnable[];
  /** From what all webhooks share. Every replica serves the webhooks; absent if there are none. */
  readonly webhookDeps?: (shared: ReviewPorts) => ServedFeatures;
  /** Of `/readyz`, by name. */
  readonly readiness: Readonly<Record<string, HealthCheck>>;
  /** TCP, by name, for the log. */
  readonly ports?: Readonly<Record<string, number>>;
  /** In order, after the manager has stopped. */
  readonly close: Readonly<Record<string, () => unknown>>;
}

/** Of the features that serve HTTPS: one certificate, one journal. */
export interface Serving {
  /** For one server; each gets every renewed pair. */
  certificate(): ServingCertificate;
  /** PEM, for client certificates of callers. Absent: callers need none. */
  readonly clientAuthorities?: Buffer;
  /** The controllers that renew the certificate, if the server issues it. */
  readonly renewal?: Pick<OpenFeature, 'gate' | 'controllers'>;
  readonly journal: OpenJournal;
  readonly readiness: Readonly<Record<string, HealthCheck>>;
  /** In order, after all features; the journal closes last. */
  readonly close: Readonly<Record<string, () => unknown>>;
}

type LeaseTimes = Pick<LeaseGateOptions, 'leaseDurationMs' | 'renewDeadlineMs' | 'retryPeriodMs'>;

/**
 * The gate of a feature's Lease. Writes of a `leaderOnly` client reject with CodedError
 * `NotLeading` unless this process leads, as it does without leader election or in a dry run.
 */
export function leadership(
  { config, cluster, credentials, log }: Pick<Host, 'config' | 'cluster' | 'credentials' | 'log'>,
  { namespace, name, ...times }: { readonly namespace: string; readonly name: string } & LeaseTimes,
): { readonly gate: LeaderGate; readonly leaderOnly: (client: Client) => Client } {
  // A dry run writes no Lease, so that it can run while another process leads.
  if (!config.leaderElect || config.dryRun) return { gate: alwaysLeading(name), leaderOnly: (client) => client };
  const { identity } = config;
  const account = () => serviceAccountOf(credentials);
  const gate = leaseGate({ cluster, name, namespace, ...times, identity, account, clock, log });
  return { gate, leaderOnly: (client) => gate.requireLeader(client) };
}

/** Their Events name the feature as controller. */
export function recorder({ config, log }: Host, feature: FeatureName, client: Client): EventRecorder {
  return eventRecorder({ client, clock, log, controller: `drawbridge.dev/${feature}`, instance: config.identity });
}

/** `cluster` is a label of the metric. */
export const countedWatches = (cluster: 'own' | 'provider', watchRefusals: CounterMetric): WatchOptions => ({
  onRefusal: ({ plural, group }, code) =>
    watchRefusals.inc({ cluster, resource: group === '' ? plural : `${plural}.${group}`, code: String(code) }),
});

/** Longer than an upgrade that deletes and creates RBAC objects, and less than STALE_MS. */
const MAX_REFUSED_MS = 10_000;

/**
 * Names the stores that are not listed yet, refused, or stale. An optional kind may be absent. A
 * refusal is only a warning for `MAX_REFUSED_MS`.
 */
export function storesProblem(all: readonly Store<Projected>[]): ReturnType<HealthCheck> {
  const names = (which: (store: Store<Projected>) => boolean): string =>
    all
      .filter(which)
      .map((store) => store.resource.plural)
      .join(', ');
  const unlisted = names((store) => !store.synced);
  if (unlisted) return `not listed yet: ${unlisted}`;
  const refusal = (refused: string): string =>
    `the API server no longer allows list and watch of: ${refused}; grant these permissions to the ServiceAccount of the server again`;
  const refused = names((store) => store.failing?.refused !== undefined);
  if (all.some((store) => (store.failing?.refusedForMs ?? 0) >= MAX_REFUSED_MS)) return refusal(refused);
  const stale = names((store) => store.ageMs > STALE_MS);
  if (stale) return `no data from the API server for over ${STALE_MS / 1000} s: ${stale}`;
  return refused ? { warning: refusal(refused) } : undefined;
}

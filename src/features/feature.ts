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

/** The clock of all features and of `serve`. */
export const clock = systemClock;

/** A feature that `--features` can name. */
export interface Feature {
  readonly name: FeatureName;
  /**
   * Maximum number of connections for quick calls (`PoolName`) to the API server of this process's cluster. If a process runs several
   * features, it uses the largest of their numbers. Slow and urgent calls, and each watch, have additional connections.
   */
  readonly connections: number;
  /** Whether the feature needs the serving certificate and the audit journal. */
  readonly servesHttps: boolean;
  /**
   * Reads the feature's files at once, so that a wrong file name fails the start, and returns a function that opens the feature. Throws a
   * CodedError, such as `InvalidGrantable`, if a file cannot be read or is invalid. The returned function rejects with CodedError
   * `PortUnavailable`, or with the error of `credentials`.
   */
  readFiles(config: Config): (host: Host) => OpenFeature | Promise<OpenFeature>;
}

/** The parts of the process that its features share. */
export interface Host {
  readonly config: Config;
  readonly cluster: Cluster;
  /** Credentials for `cluster`. */
  readonly credentials: Credentials;
  readonly metrics: Metrics;
  /** Counts refused lists and watches, as `watchRefusalsMetric`. */
  readonly watchRefusals: CounterMetric;
  readonly log: Log;
  /** Starts and stops controllers at run time. */
  readonly manager: Pick<Manager, 'add' | 'remove'>;
  /** The parts that features with `servesHttps` share. Throws if no feature of this process has `servesHttps`. */
  readonly serving: () => Serving;
  /** Aborts when the process must stop. */
  readonly signal: AbortSignal;
}

/** A feature whose stores and ports are open. `serve` opens its webhooks, and runs its controllers. */
export interface OpenFeature {
  /** Gate of the feature's controllers. No two features share a Lease, so another replica may lead another feature. */
  readonly gate: LeaderGate;
  /** The controllers, in the order in which they start. */
  readonly controllers: readonly Runnable[];
  /**
   * Returns the dependencies of the feature's webhooks, given those that all webhooks share. Absent if the feature has no webhooks. Every
   * replica serves the webhooks.
   */
  readonly webhookDeps?: (shared: ReviewPorts) => ServedFeatures;
  /** Checks of `/readyz`, by name. */
  readonly readiness: Readonly<Record<string, HealthCheck>>;
  /** Called before the controllers of this process start. They start once it has resolved for every feature. */
  readonly beforeControllers?: () => Promise<void>;
  /** TCP ports that it opened, by name, for the log. */
  readonly ports?: Readonly<Record<string, number>>;
  /** Closes its parts, in order. `serve` calls these after the manager has stopped. */
  readonly close: Readonly<Record<string, () => unknown>>;
}

/** The shared parts of the features that serve HTTPS: one certificate, one journal. */
export interface Serving {
  /** A certificate for one server; each server gets every renewed pair. */
  certificate(): ServingCertificate;
  /** Authorities (PEM) for the client certificates that callers of the webhooks must present. Absent: callers need none. */
  readonly clientAuthorities?: Buffer;
  /**
   * Strips the random path segment of this installation from the path of a call. Returns undefined if the segment is not accepted; the
   * server then answers 404. Absent if the certificate comes from files: webhook paths then have no segment.
   */
  readonly routeOf?: (path: string) => string | undefined;
  /** The controllers that renew the certificate, if the server issues it. */
  readonly renewal?: Pick<OpenFeature, 'gate' | 'controllers'>;
  readonly journal: OpenJournal;
  readonly readiness: Readonly<Record<string, HealthCheck>>;
  /** Closes its parts, in order. `serve` calls these after it has closed all features, and closes the journal last. */
  readonly close: Readonly<Record<string, () => unknown>>;
}

type LeaseTimes = Pick<LeaseGateOptions, 'leaseDurationMs' | 'renewDeadlineMs' | 'retryPeriodMs'>;

/**
 * The gate of one feature's Lease, and a function that restricts a client: its writes reject with CodedError `NotLeading` while this
 * process is not the leader. Without leader election, or in a dry run, this process always leads, and the function returns the client
 * unchanged.
 */
export function leadership(
  { config, cluster, credentials, log }: Pick<Host, 'config' | 'cluster' | 'credentials' | 'log'>,
  { namespace, name, ...times }: { readonly namespace: string; readonly name: string } & LeaseTimes,
): { readonly gate: LeaderGate; readonly leaderOnly: (client: Client) => Client } {
  // A dry run writes no Lease either, so that it can run while another process leads.
  if (!config.leaderElect || config.dryRun) return { gate: alwaysLeading(name), leaderOnly: (client) => client };
  const { identity } = config;
  const account = () => serviceAccountOf(credentials);
  const gate = leaseGate({ cluster, name, namespace, ...times, identity, account, clock, log });
  return { gate, leaderOnly: (client) => gate.requireLeader(client) };
}

/** An Event recorder whose Events name the feature as their controller. */
export function recorder({ config, log }: Host, feature: FeatureName, client: Client): EventRecorder {
  return eventRecorder({ client, clock, log, controller: `drawbridge.dev/${feature}`, instance: config.identity });
}

/** Options of watches whose refusals are counted. `cluster` is a label of the metric. */
export const countedWatches = (cluster: 'own' | 'provider', watchRefusals: CounterMetric): WatchOptions => ({
  onRefusal: ({ plural, group }, code) =>
    watchRefusals.inc({ cluster, resource: group === '' ? plural : `${plural}.${group}`, code: String(code) }),
});

/**
 * How long a permission may be missing before the process should get no more traffic, milliseconds: longer than an upgrade that deletes and
 * creates RBAC objects, and less than STALE_MS.
 */
const MAX_REFUSED_MS = 10_000;

/**
 * A readiness check: names the stores that are not listed yet, refused, or stale. Undefined if all stores are listed and current. An
 * optional kind that is not installed counts as listed. A refusal is only a warning until it has lasted 10 s.
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

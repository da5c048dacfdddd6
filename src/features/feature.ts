import type { ServedFeatures } from '../admission/app.ts';
import type { ServingCertificate } from '../admission/certificate.ts';
import type { ReviewPorts } from '../admission/ports.ts';
import type { OpenJournal } from '../audit/journal.ts';
import type { Config, FeatureName } from '../config.ts';
import { type LeaderGate, openGate } from '../engine/leader-gate.ts';
import type { Manager } from '../engine/manager.ts';
import type { Runnable } from '../engine/member.ts';
import { systemClock } from '../kit/clock.ts';
import type { Client } from '../kube/client.ts';
import type { Cluster } from '../kube/cluster.ts';
import type { Credentials } from '../kube/credentials.ts';
import { type EventRecorder, eventRecorder } from '../kube/event-recorder.ts';
import { type LeaseGateOptions, leaseGate } from '../kube/lease-gate.ts';
import type { Projected, Store } from '../kube/store.ts';
import type { HealthCheck } from '../observe/health.ts';
import type { Log } from '../observe/log.ts';
import type { Metrics } from '../observe/metrics.ts';

export const clock = systemClock;

/** A feature that `--features` can name. */
export interface Feature {
  readonly name: FeatureName;
  /**
   * Most connections for quick calls to the API server of this process's cluster. Several features share the largest number. Slow and
   * urgent calls, and each watch, have additional ones.
   */
  readonly connections: number;
  /** Whether the feature serves HTTPS, so that it needs the serving certificate and the audit journal. */
  readonly answersCalls: boolean;
  /**
   * Reads the feature's files at once, so that a wrong file name fails the start, and returns a function that opens the feature. Throws if
   * a file cannot be read or is invalid. The returned function rejects with a CodedError if a port is unavailable, or with the error of
   * `credentials`.
   */
  prepare(config: Config): (host: Host) => OpenFeature | Promise<OpenFeature>;
}

/** The parts of the process that its features share. */
export interface Host {
  readonly config: Config;
  readonly cluster: Cluster;
  /** Credentials for `cluster`. */
  readonly credentials: Credentials;
  readonly metrics: Metrics;
  readonly log: Log;
  /** Starts and stops controllers at run time. */
  readonly manager: Pick<Manager, 'add' | 'remove'>;
  /** The shared parts of features with `answersCalls`; throws for others. */
  readonly serving: () => Serving;
  /** Aborts when the process must stop. */
  readonly signal: AbortSignal;
}

/** A feature whose stores, webhooks, and ports are open. `serve` runs its controllers. */
export interface OpenFeature {
  /** Gate of the feature's controllers. Each feature has its own, so that none waits for another. */
  readonly gate: LeaderGate;
  /** The controllers, in the order in which they start. */
  readonly controllers: readonly Runnable[];
  /** Dependencies of its webhooks, which every replica serves. */
  readonly webhooks?: (reviews: ReviewPorts) => ServedFeatures;
  /** Checks of `/readyz`, by name. */
  readonly readiness: Readonly<Record<string, HealthCheck>>;
  /** Resolves when its controllers may start. The controllers of all features wait until each has resolved. Default: immediately. */
  readonly ready?: () => Promise<void>;
  /** Ports that it opened, by name, for the log. */
  readonly ports?: Readonly<Record<string, number>>;
  /** Closes its parts, in order. */
  readonly close: Readonly<Record<string, () => unknown>>;
}

/** The shared parts of the features that serve HTTPS: one certificate, one journal. */
export interface Serving {
  /** A certificate for one server; each server gets every renewed pair. */
  certificate(): ServingCertificate;
  /** Authorities (PEM) for the client certificates that callers of the webhooks must present. */
  readonly clientAuthorities?: Buffer;
  /** A called path without its segment; undefined if the server must not answer it. Absent if the server answers all fixed paths. */
  readonly routeOf?: (path: string) => string | undefined;
  /**
   * The controllers that renew the certificate, if the server issues it. The first feature that calls this runs them behind its gate with
   * its client; later callers get none.
   */
  certificateControllers(client: Client): readonly Runnable[];
  readonly journal: OpenJournal;
  readonly readiness: Readonly<Record<string, HealthCheck>>;
  /** Closes its parts, in order, after the last audit line. The journal stays open; `serve` closes it last. */
  readonly close: Readonly<Record<string, () => unknown>>;
}

type LeaseTimes = Pick<LeaseGateOptions, 'leaseDurationMs' | 'renewDeadlineMs' | 'retryPeriodMs'>;

/**
 * The Lease of one feature, and the client that writes only while this process holds it. Without leader election, or in a dry run, an open
 * gate and the client itself.
 */
export function leadership(
  { config, cluster, log }: Host,
  { namespace, name, ...times }: { readonly namespace: string; readonly name: string } & LeaseTimes,
): { readonly gate: LeaderGate; readonly leaderOnly: (client: Client) => Client } {
  // A dry run writes no Lease either, so that it can run beside the leader.
  if (!config.leaderElect || config.dryRun) return { gate: openGate(name), leaderOnly: (client) => client };
  const { identity } = config;
  const gate = leaseGate({ client: cluster.client, name, namespace, ...times, identity, clock, log });
  return { gate, leaderOnly: (client) => gate.requireLeader(client) };
}

/** An Event recorder whose Events name the feature as their controller. */
export function recorder({ config, log }: Host, feature: FeatureName, client: Client): EventRecorder {
  return eventRecorder({ client, clock, log, controller: `drawbridge.dev/${feature}`, instance: config.identity });
}

/** A healthy watch session gets an answer at least every 28 s; after twice that, the store is stale. Milliseconds. */
const MAX_STORE_AGE_MS = 60_000;

/** A readiness check that names the stores that are not listed yet or are stale. An optional kind that is not installed counts as listed. */
export function storesProblem(all: readonly Store<Projected>[]): string | undefined {
  const names = (which: (store: Store<Projected>) => boolean): string =>
    all
      .filter(which)
      .map((store) => store.resource.plural)
      .join(', ');
  const unlisted = names((store) => !store.synced);
  if (unlisted) return `not listed yet: ${unlisted}`;
  const stale = names((store) => store.ageMs > MAX_STORE_AGE_MS);
  return stale ? `no answer from the API server for over ${MAX_STORE_AGE_MS / 1000} s: ${stale}` : undefined;
}

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

/** Something that a process can be asked to run, by `--features`. */
export interface Feature {
  readonly name: FeatureName;
  /** Connections that it needs for calls to the cluster of this process. */
  readonly connections: number;
  /** It answers calls, so it needs the serving certificate and the audit journal. */
  readonly answersCalls: boolean;
  /**
   * Reads its files at once, because a person who named the wrong one waits for an answer; returns what opens it. Throws a CodedError that
   * says which file. What it returns rejects with a CodedError when a port cannot be had.
   */
  prepare(config: Config): (host: Host) => OpenFeature | Promise<OpenFeature>;
}

/** What the process gives each feature that runs in it. */
export interface Host {
  readonly config: Config;
  readonly cluster: Cluster;
  /** Of the cluster of this process. */
  readonly credentials: Credentials;
  readonly metrics: Metrics;
  readonly log: Log;
  /** For controllers that come and go. */
  readonly manager: Pick<Manager, 'add' | 'remove'>;
  /** For features that answer calls. */
  readonly serving: () => Serving;
  /** Aborts when the process is to stop. */
  readonly signal: AbortSignal;
}

export interface OpenFeature {
  /** Its controllers run behind it: those of one feature do not wait for those of another. */
  readonly gate: LeaderGate;
  /** In the order in which they start. */
  readonly controllers: readonly Runnable[];
  /** What its webhooks need; they are served in every replica. */
  readonly webhooks?: (reviews: ReviewPorts) => ServedFeatures;
  /** Checks of `/readyz`, by name. */
  readonly readiness: Readonly<Record<string, HealthCheck>>;
  /** Resolves when its controllers may start. Default: at once. */
  readonly ready?: () => Promise<void>;
  /** Ports that it has opened, by name, for the log. */
  readonly ports?: Readonly<Record<string, number>>;
  /** How to close what it has opened, in order. */
  readonly close: Readonly<Record<string, () => unknown>>;
}

/** What the features of this process share that answer calls: one certificate, one journal. */
export interface Serving {
  /** For one server: each gets every new pair. */
  certificate(): ServingCertificate;
  /** Authorities (PEM) whose client certificates callers of the webhooks have to show. */
  readonly clientAuthorities?: Buffer;
  /** The route that answers a path that was called; undefined: none. Absent where all fixed paths are answered. */
  readonly routeOf?: (path: string) => string | undefined;
  /**
   * The controllers of the certificate, when the server makes it: for the first feature that asks, to run behind its gate with its client.
   * One is enough, so that later ones get none.
   */
  certificateControllers(client: Client): readonly Runnable[];
  readonly journal: OpenJournal;
  readonly readiness: Readonly<Record<string, HealthCheck>>;
  /** How to close it, in order, when no more lines come. The journal stays open: it is closed last. */
  readonly close: Readonly<Record<string, () => unknown>>;
}

type LeaseTimes = Pick<LeaseGateOptions, 'leaseDurationMs' | 'renewDeadlineMs' | 'retryPeriodMs'>;

/** The Lease of one feature, and the client that writes only while this process holds it. */
export function leadership(
  { config, cluster, log }: Host,
  { namespace, name, ...times }: { readonly namespace: string; readonly name: string } & LeaseTimes,
): { readonly gate: LeaderGate; readonly guard: (client: Client) => Client } {
  // A dry run writes no Lease either, and is of use beside the one who holds it.
  if (!config.leaderElect || config.dryRun) return { gate: openGate(name), guard: (client) => client };
  const { identity } = config;
  const gate = leaseGate({ client: cluster.client, name, namespace, ...times, identity, clock, log });
  return { gate, guard: (client) => gate.requireLeader(client) };
}

export function recorder({ config, log }: Host, feature: FeatureName, client: Client): EventRecorder {
  return eventRecorder({ client, clock, log, controller: `drawbridge.dev/${feature}`, instance: config.identity });
}

/** A healthy watch hears of the API server at least every 30 s; what has been silent for twice as long is out of date. */
const MAX_STORE_AGE_MS = 60_000;

/** Names what has not been listed yet or is out of date; an optional kind that is not installed counts as listed. */
export function storesProblem(all: readonly Store<Projected>[]): string | undefined {
  const names = (which: (store: Store<Projected>) => boolean): string =>
    all
      .filter(which)
      .map((store) => store.resource.plural)
      .join(', ');
  const waiting = names((store) => !store.synced);
  if (waiting) return `not listed yet: ${waiting}`;
  const stale = names((store) => store.ageMs > MAX_STORE_AGE_MS);
  return stale ? `no word from the API server for over ${MAX_STORE_AGE_MS / 1000} s: ${stale}` : undefined;
}

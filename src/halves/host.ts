import type { Config } from '../config.ts';
import { type LeaderGate, openGate } from '../engine/leader-gate.ts';
import { systemClock } from '../kit/clock.ts';
import type { Client } from '../kube/client.ts';
import type { Cluster } from '../kube/cluster.ts';
import { type EventRecorder, eventRecorder } from '../kube/event-recorder.ts';
import { type LeaseGateOptions, leaseGate } from '../kube/lease-gate.ts';
import type { Projected, Store } from '../kube/store.ts';
import type { Health } from '../observe/health.ts';
import type { Log } from '../observe/log.ts';
import type { Metrics } from '../observe/metrics.ts';

export const clock = systemClock;

/** What the process gives each half that runs in it. */
export interface Host {
  readonly config: Config;
  readonly cluster: Cluster;
  readonly health: Health;
  readonly metrics: Metrics;
  readonly log: Log;
}

/** What every half gives back, besides what its loops need. */
export interface Half {
  /** What its loops run behind: those of one half do not wait for those of another. */
  readonly gate: LeaderGate;
  /** Ports it has opened, by name, for the log. */
  readonly ports: Readonly<Record<string, number>>;
  /** How to close what it has opened, in order. */
  readonly close: Readonly<Record<string, () => unknown>>;
}

type LeaseTimes = Pick<LeaseGateOptions, 'leaseDurationMs' | 'renewDeadlineMs' | 'retryPeriodMs'>;

/** The lease of one half, and the client that writes only while this process holds it. */
export function leadership(
  { config, cluster, log }: Host,
  { namespace, name, ...times }: { readonly namespace: string; readonly name: string } & LeaseTimes,
): { readonly gate: LeaderGate; readonly guard: (client: Client) => Client } {
  // A dry run writes no Lease either, and is of use beside the one who holds it.
  if (!config.leaderElect || config.dryRun) return { gate: openGate(name), guard: (client) => client };
  const { identity } = config;
  const gate = leaseGate({ client: cluster.client, name, namespace, ...times, identity, clock, log });
  return { gate, guard: (client) => gate.guard(client) };
}

export function recorder({ config, log }: Host, half: string, client: Client): EventRecorder {
  return eventRecorder({ client, clock, log, controller: `drawbridge.dev/${half}`, instance: config.identity });
}

/** A healthy watch hears of the API server at least every 30 s; what has been silent for twice as long is out of date. */
const STALE_MS = 60_000;

/** Names what has not been listed yet or is out of date; an optional kind that is not installed counts as listed. */
export function storesProblem(all: readonly Store<Projected>[]): string | undefined {
  const names = (which: (store: Store<Projected>) => boolean): string =>
    all
      .filter(which)
      .map((store) => store.resource.plural)
      .join(', ');
  const waiting = names((store) => !store.synced);
  if (waiting) return `not listed yet: ${waiting}`;
  const stale = names((store) => store.ageMs > STALE_MS);
  return stale ? `no word from the API server for over ${STALE_MS / 1000} s: ${stale}` : undefined;
}

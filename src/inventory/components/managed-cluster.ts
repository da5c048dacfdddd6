import type { ReconcileRequest } from '../../api/inventory/contract/request.ts';
import { type Clock, parseTime } from '../../kit/clock.ts';
import { CodedError } from '../../kit/errors.ts';
import type { Client } from '../../kube/client.ts';
import { inlineCredentials } from '../../kube/inline-kubeconfig.ts';
import type { RunContext } from '../ports.ts';
import type { ComponentsDeps } from './inputs.ts';

/** Part of the time that the server waits for an answer which the cluster has for its own. */
const SHARE = 0.7;
/** Whatever the two clocks say, milliseconds. */
const bounds = { leastMs: 1_000, mostMs: 20_000 };

/**
 * Opens the cluster of a kubeconfig for as long as `work` takes. A cluster that is away must not make the component late: that would
 * count against the component, and so against other entries. Rejects with CodedError `ClusterAway` in time for an answer, and as
 * `inlineCredentials` does for a text that it refuses.
 */
export async function withCluster<T>(
  { connect, clock }: Pick<ComponentsDeps, 'connect' | 'clock'>,
  run: Pick<RunContext, 'request' | 'signal'>,
  kubeconfig: string,
  work: (client: Client, signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const cluster = connect(await inlineCredentials(kubeconfig));
  const patienceMs = patienceOf(run.request, clock);
  const away = new AbortController();
  const giveUp = (): void => away.abort(run.signal.reason);
  run.signal.addEventListener('abort', giveUp, { once: true });
  const cancel = clock.schedule(patienceMs, () => {
    const message = `the cluster did not answer within ${Math.round(patienceMs)} ms`;
    away.abort(new CodedError('ClusterAway', message));
  });
  try {
    return await work(cluster.client, away.signal);
  } finally {
    cancel();
    run.signal.removeEventListener('abort', giveUp);
    // Nothing is in flight any more that anybody waits for.
    cluster.close().catch(() => undefined);
  }
}

function patienceOf({ run }: ReconcileRequest, clock: Clock): number {
  const leftMs = (parseTime(run.deadline) ?? clock.now()) - clock.now();
  return Math.min(bounds.mostMs, Math.max(bounds.leastMs, leftMs * SHARE));
}

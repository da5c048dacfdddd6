import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { type Cancel, type Clock, threadsMonotonic } from '../kit/clock.ts';
import { CodedError, describe } from '../kit/errors.ts';
import type { Listening } from '../kit/listen.ts';
import type { Health, HealthReport } from './health.ts';
import type { Address } from './http.ts';

interface HealthServerOptions extends Address {
  readonly health: Health;
  readonly clock: Clock;
  /** The built program of the thread, `dist/health-thread.mjs`. */
  readonly program: URL;
}

export interface HealthServer extends Listening {
  /** Aborts with CodedError `HealthThreadEnded` if the thread ends before `close`. */
  readonly failed: AbortSignal;
}

export interface ThreadData extends Address {
  /** Used until the main thread sends another one. */
  readonly report: HealthReport;
  /** By `threadsMonotonic`. In shared memory, so that setting it wakes no thread. */
  readonly aliveAtMs: Float64Array<SharedArrayBuffer>;
}

/** The first message. Each later one, of any content, asks for a report. */
export type ThreadStarted = { readonly port: number } | { readonly problem: string };

/** Each time wakes an idle process, which costs more processor time than all its other work. */
const ALIVE_INTERVAL_MS = 1_000;
/** Probes need about 5 MB; a thread that reaches a limit is broken. */
const LIMITS = { maxOldGenerationSizeMb: 32, maxYoungGenerationSizeMb: 4 };

/**
 * Answers probes in a thread of its own, so that connections wait for no other work, and `/livez`
 * can report a blocked event loop. Rejects with `PortUnavailable`.
 */
export async function startHealthServer(options: HealthServerOptions): Promise<HealthServer> {
  const { host, port, health, clock, program } = options;
  const aliveAtMs = new Float64Array(new SharedArrayBuffer(8));
  aliveAtMs[0] = threadsMonotonic();
  const workerData: ThreadData = { host, port, report: health.readiness(), aliveAtMs };
  const thread = new Worker(program, { workerData, resourceLimits: LIMITS });
  const failure = new AbortController();
  let cancel: Cancel = () => {};
  let closed = false;
  const fail = (cause: unknown): void => {
    cancel();
    if (closed) return;
    const found = `the thread that answers probes ended: ${describe(cause)}`;
    failure.abort(new CodedError('HealthThreadEnded', `${found}; start the server again, and report this error`));
  };
  thread.on('error', fail);
  thread.once('exit', (code) => fail(`exit code ${code}`));
  const recordAlive = (): void => {
    aliveAtMs[0] = threadsMonotonic();
    cancel = clock.schedule(ALIVE_INTERVAL_MS, recordAlive);
  };
  const close = async (): Promise<void> => {
    closed = true;
    cancel();
    await thread.terminate();
  };
  recordAlive();
  const started = await firstMessage(thread, failure.signal);
  thread.on('message', () => {
    aliveAtMs[0] = threadsMonotonic();
    thread.postMessage(health.readiness());
  });
  if ('port' in started) return { port: started.port, failed: failure.signal, close };
  await close();
  throw new CodedError('PortUnavailable', started.problem);
}

async function firstMessage(thread: Worker, failed: AbortSignal): Promise<ThreadStarted> {
  try {
    const [message] = await once(thread, 'message', { signal: failed });
    return message as ThreadStarted;
  } catch (error) {
    failed.throwIfAborted();
    throw error;
  }
}

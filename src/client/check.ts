import type { Clock } from '../kit/clock.ts';
import type { ClusterConnection } from './cluster-connection.ts';

/** One result of a check of `doctor`. `found`: the check found a fault, which `message` describes. */
export interface CheckResult {
  readonly result: 'ok' | 'found' | 'not checked';
  readonly message: string;
}

/** The inputs of a check besides the connection. */
export interface CheckOptions {
  /** The namespace of the server. */
  readonly serverNamespace: string;
  readonly clock: Clock;
}

/**
 * One check of `doctor`. It only reads or sends dry runs, so it changes nothing. `run` rejects if a call fails; `doctor` then shows the
 * check as not checked.
 */
export interface Check {
  readonly name: string;
  run(connection: ClusterConnection, options: CheckOptions): Promise<CheckResult[]>;
}

export const ok = (message: string): CheckResult => ({ result: 'ok', message });
export const fault = (message: string): CheckResult => ({ result: 'found', message });

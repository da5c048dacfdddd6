import type { Clock } from '../kit/clock.ts';
import type { ClusterConnection } from './cluster-connection.ts';

/** One result of a check of `doctor`. `found`: there is a fault. */
export interface CheckResult {
  readonly result: 'ok' | 'found' | 'not checked';
  readonly message: string;
}

/** The inputs of a check besides the session. */
export interface CheckOptions {
  /** The namespace of the server. */
  readonly serverNamespace: string;
  readonly clock: Clock;
}

/**
 * One check of `doctor`. It changes nothing: it reads, or sends a dry run. Rejects if a call fails; `doctor` then shows it as not checked.
 */
export interface Check {
  readonly name: string;
  run(connection: ClusterConnection, options: CheckOptions): Promise<CheckResult[]>;
}

export const ok = (message: string): CheckResult => ({ result: 'ok', message });
export const fault = (message: string): CheckResult => ({ result: 'found', message });

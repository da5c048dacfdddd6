import type { Clock } from '../kit/clock.ts';
import type { ClusterConnection } from './cluster-connection.ts';

/** `found`: a fault, which `message` describes. */
export interface CheckResult {
  readonly result: 'ok' | 'found' | 'not checked';
  readonly message: string;
}

export interface CheckOptions {
  /** Of the server. */
  readonly serverNamespace: string;
  readonly clock: Clock;
}

/** Changes nothing: it reads, or sends dry runs. If `run` rejects, the check was not made. */
export interface Check {
  readonly name: string;
  run(connection: ClusterConnection, options: CheckOptions): Promise<CheckResult[]>;
}

export const ok = (message: string): CheckResult => ({ result: 'ok', message });
export const fault = (message: string): CheckResult => ({ result: 'found', message });

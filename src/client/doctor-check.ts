import type { Clock } from '../kit/clock.ts';
import type { ClusterConnection } from './cluster-connection.ts';

export interface CheckOptions {
  /** Of the server. */
  readonly serverNamespace: string;
  readonly clock: Clock;
}

/** Changes nothing: it reads, or sends dry runs. */
export interface Check {
  readonly name: string;
  /** What it says if it finds no fault. */
  readonly ok: string;
  /** What it finds, and what to do. Rejects if it cannot look. */
  faults(connection: ClusterConnection, options: CheckOptions): Promise<string[]>;
}

import type { Clock } from '../kit/clock.ts';
import type { Session } from './session.ts';

/** One result of a check of `doctor`. `found`: the check found a fault. */
export interface Finding {
  readonly result: 'ok' | 'found' | 'not checked';
  readonly message: string;
}

/** What checks need besides the session. */
export interface CheckOptions {
  /** The namespace of the server. */
  readonly serverNamespace: string;
  readonly clock: Clock;
}

/** One check of `doctor`. It only reads, or makes a dry run. Rejects if a call fails; `doctor` then shows it as not checked. */
export interface Check {
  readonly name: string;
  run(session: Session, options: CheckOptions): Promise<Finding[]>;
}

export const ok = (message: string): Finding => ({ result: 'ok', message });
export const found = (message: string): Finding => ({ result: 'found', message });

import { describe } from '../kit/errors.ts';

/** A problem in one line, or a warning. */
export type HealthCheck = () => string | HealthWarning | undefined;

/** `/readyz` shows it, but does not fail. */
export interface HealthWarning {
  readonly warning: string;
}

export interface HealthReport {
  readonly healthy: boolean;
  readonly checks: readonly { readonly name: string; readonly problem?: string; readonly warning?: string }[];
}

/** Named checks of `/readyz` (may this process get traffic?). */
export class Health {
  readonly #checks = new Map<string, HealthCheck>();

  /** Or replaces the check; returns a function that removes it. */
  addCheck(name: string, check: HealthCheck): () => void {
    this.#checks.set(name, check);
    return () => {
      if (this.#checks.get(name) === check) this.#checks.delete(name);
    };
  }

  /** A check that throws counts as a problem. */
  readiness(): HealthReport {
    return reportOf([...this.#checks].map(([name, check]) => ({ name, ...resultOf(check) })));
  }
}

/** Then `/readyz` fails. By default, a kubelet waits as long for an answer. */
const MAX_READY_AGE_MS = 1_000;
/** Then `/livez` fails. The chart's liveness probe waits as long for an answer. */
const MAX_LIVE_AGE_MS = 5_000;

/** Of `/readyz`, from the main thread's last report, and the age of `aliveAtMs`. */
export function readinessAt(ageMs: number, { checks }: HealthReport): HealthReport {
  return reportOf([eventLoopCheck(ageMs, MAX_READY_AGE_MS), ...checks]);
}

/** Of `/livez` (would a restart help?), from the age of `aliveAtMs`. */
export function livenessAt(ageMs: number): HealthReport {
  return reportOf([eventLoopCheck(ageMs, MAX_LIVE_AGE_MS)]);
}

interface Checked {
  readonly name: string;
  readonly problem?: string | undefined;
  readonly warning?: string;
}

function eventLoopCheck(ageMs: number, maxMs: number): Checked {
  const problem = `blocked for ${(ageMs / 1000).toFixed(1)} s; at most ${maxMs / 1000} s`;
  return { name: 'event-loop', problem: ageMs > maxMs ? problem : undefined };
}

function reportOf(checks: readonly (HealthReport['checks'][number] | Checked)[]): HealthReport {
  const results = checks.map(({ name, problem, warning }) => ({
    name,
    ...(problem === undefined ? {} : { problem }),
    ...(warning === undefined ? {} : { warning }),
  }));
  return { healthy: results.every((result) => result.problem === undefined), checks: results };
}

function resultOf(check: HealthCheck): Omit<Checked, 'name'> {
  try {
    const found = check();
    return typeof found === 'string' ? { problem: found } : (found ?? {});
  } catch (error) {
    return { problem: `the check itself failed: ${describe(error)}` };
  }
}

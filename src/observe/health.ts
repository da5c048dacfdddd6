import { describe } from '../kit/errors.ts';

/** Returns a problem in one line, or a warning; undefined if there is neither. */
export type HealthCheck = () => string | HealthWarning | undefined;

/** A problem that `/readyz` shows, but that does not fail it. */
export interface HealthWarning {
  readonly warning: string;
}

/** The result of all checks. */
export interface HealthReport {
  readonly healthy: boolean;
  readonly checks: readonly { readonly name: string; readonly problem?: string; readonly warning?: string }[];
}

/** Named checks of `/readyz` (may this process get traffic?). */
export class Health {
  readonly #checks = new Map<string, HealthCheck>();

  /** Registers or replaces a check; returns a function that removes it. */
  addCheck(name: string, check: HealthCheck): () => void {
    this.#checks.set(name, check);
    return () => {
      if (this.#checks.get(name) === check) this.#checks.delete(name);
    };
  }

  /** Runs all checks. A check that throws counts as a problem. */
  readiness(): HealthReport {
    return reportOf([...this.#checks].map(([name, check]) => ({ name, ...resultOf(check) })));
  }
}

/** Age of `aliveAtMs` (`ThreadData`) above which `/readyz` fails, milliseconds. By default, a kubelet waits as long for an answer. */
const MAX_READY_AGE_MS = 1_000;
/** Age of `aliveAtMs` above which `/livez` fails, milliseconds. The chart's liveness probe waits as long for an answer. */
const MAX_LIVE_AGE_MS = 5_000;

/** The answer of `/readyz`, from the last report of the main thread, and the age of `aliveAtMs` in milliseconds. */
export function readinessAt(ageMs: number, { checks }: HealthReport): HealthReport {
  return reportOf([eventLoopCheck(ageMs, MAX_READY_AGE_MS), ...checks]);
}

/** The answer of `/livez` (would a restart help?), from the age of `aliveAtMs` in milliseconds. */
export function livenessAt(ageMs: number): HealthReport {
  return reportOf([eventLoopCheck(ageMs, MAX_LIVE_AGE_MS)]);
}

/** The result of one check. */
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

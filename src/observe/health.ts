import { describe } from '../kit/errors.ts';

/** Returns the problem in one line; undefined if there is none. */
export type HealthCheck = () => string | undefined;

export interface HealthReport {
  readonly healthy: boolean;
  readonly checks: readonly { readonly name: string; readonly problem?: string }[];
}

/** Named checks of `/readyz` (may this process get traffic?) and `/livez` (would a restart help?). */
export class Health {
  readonly #ready = new Map<string, HealthCheck>();
  readonly #live = new Map<string, HealthCheck>();

  /** Registers or replaces a check; returns a function that removes it. */
  ready(name: string, check: HealthCheck): () => void {
    return register(this.#ready, name, check);
  }

  live(name: string, check: HealthCheck): () => void {
    return register(this.#live, name, check);
  }

  readiness(): HealthReport {
    return report(this.#ready);
  }

  liveness(): HealthReport {
    return report(this.#live);
  }
}

function register(checks: Map<string, HealthCheck>, name: string, check: HealthCheck): () => void {
  checks.set(name, check);
  return () => {
    if (checks.get(name) === check) checks.delete(name);
  };
}

function report(checks: ReadonlyMap<string, HealthCheck>): HealthReport {
  const results = [...checks].map(([name, check]) => {
    const problem = problemOf(check);
    return problem === undefined ? { name } : { name, problem };
  });
  return { healthy: results.every((result) => result.problem === undefined), checks: results };
}

function problemOf(check: HealthCheck): string | undefined {
  try {
    return check();
  } catch (error) {
    return `the check itself failed: ${describe(error)}`;
  }
}

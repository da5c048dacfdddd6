import { nameOf, type Resource } from '../../api/object.ts';
import { regarding } from '../../kube/event-object.ts';
import type { EventRecorder } from '../../kube/event-recorder.ts';

/**
 * Worst first. `forbidden`: a 403. `failing`: another error. `refused`: not synced as it is.
 * `partial`: a cluster stores something else than was written.
 */
const problemRanks = ['forbidden', 'failing', 'refused', 'partial'] as const;

export interface Problem {
  readonly rank: (typeof problemRanks)[number];
  /** With what to do, unless it is the error of a call. */
  readonly message: string;
}

/** 0 is the worst. */
export const severityOf = ({ rank }: Problem): number => problemRanks.indexOf(rank);

const MAX_LISTED = 10;

export class Problems {
  readonly #byKey = new Map<string, Problem>();
  readonly #onChange: () => void;

  constructor(onChange: () => void) {
    this.#onChange = onChange;
  }

  /** Whether it differs from the key's last one. */
  set(key: string, problem: Problem): boolean {
    const before = this.#byKey.get(key);
    if (before?.rank === problem.rank && before.message === problem.message) return false;
    this.#byKey.set(key, problem);
    this.#onChange();
    return true;
  }

  clear(key: string): void {
    if (this.#byKey.delete(key)) this.#onChange();
  }

  /** Worst first, at most ten, and a line with how many more. */
  list(kind: string): string[] {
    const all = [...this.#byKey].sort(
      ([keyA, a], [keyB, b]) => severityOf(a) - severityOf(b) || (keyA < keyB ? -1 : 1),
    );
    const listed = all.slice(0, MAX_LISTED).map(([key, { message }]) => `${kind} ${key}: ${message}`);
    return all.length > MAX_LISTED ? [...listed, `and ${all.length - MAX_LISTED} more of ${kind}`] : listed;
  }
}

export function recordProblem(
  events: EventRecorder,
  resource: Resource,
  { key, uid }: { readonly key: string; readonly uid: string },
  { message }: Problem,
): void {
  events.record({
    regarding: regarding(resource, { ...nameOf(key), uid }),
    type: 'Warning',
    reason: 'NotSynced',
    action: 'Sync',
    note: message,
  });
}

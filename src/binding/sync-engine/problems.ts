import { nameOf, type Resource } from '../../api/object.ts';
import { regarding } from '../../kube/event-object.ts';
import type { EventRecorder } from '../../kube/event-recorder.ts';

/**
 * The ranks of problems, worst first. `forbidden`: an API server denies a call (403). `failing`: a call fails with another error.
 * `refused`: the server does not sync the object as it is. `partial`: a cluster accepts a write but stores something else.
 */
const problemRanks = ['forbidden', 'failing', 'refused', 'partial'] as const;

/** Why the objects of a key are not in sync. */
export interface Problem {
  readonly rank: (typeof problemRanks)[number];
  /** What is wrong and, unless it is the error of a call, what to do. */
  readonly message: string;
}

/** Position of the problem's rank; 0 is the worst. */
export const severityOf = ({ rank }: Problem): number => problemRanks.indexOf(rank);

/** Maximum number of problems that are listed one by one. */
const MAX_LISTED = 10;

/** The problems of single objects, by key. */
export class Problems {
  readonly #byKey = new Map<string, Problem>();
  readonly #onChange: () => void;

  constructor(onChange: () => void) {
    this.#onChange = onChange;
  }

  /** Returns whether the problem is new, or differs from the key's last one. */
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

  /** The problems as `<kind> <key>: <message>`, worst first, then by key. After ten, a last line states how many more there are. */
  list(kind: string): string[] {
    const all = [...this.#byKey].sort(
      ([keyA, a], [keyB, b]) => severityOf(a) - severityOf(b) || (keyA < keyB ? -1 : 1),
    );
    const listed = all.slice(0, MAX_LISTED).map(([key, { message }]) => `${kind} ${key}: ${message}`);
    return all.length > MAX_LISTED ? [...listed, `and ${all.length - MAX_LISTED} more of ${kind}`] : listed;
  }
}

/** Records an Event about a new problem on the consumer's object. */
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

import type { Resource } from '../../api/object.ts';
import { regarding } from '../../kube/event-object.ts';
import type { EventRecorder } from '../../kube/event-recorder.ts';
import { type Problem, Problems } from './problems.ts';
import type { SyncedObject } from './synced-object.ts';

export type Report = (key: string, problem: Problem | undefined, consumer: SyncedObject | undefined) => void;

/** Keeps the problems of single objects, and tells of each new one by an Event on the object. */
export function objectProblems(
  resource: Resource,
  events: EventRecorder,
  onChange: () => void,
): { readonly problems: Problems; readonly report: Report } {
  const problems = new Problems(onChange);
  const report: Report = (key, problem, consumer) => {
    if (!problem) {
      problems.clear(key);
      return;
    }
    if (!problems.set(key, problem) || !consumer) return;
    events.record({
      regarding: regarding(resource, consumer.object.metadata),
      type: 'Warning',
      reason: 'NotSynced',
      action: 'Sync',
      note: problem.message,
    });
  };
  return { problems, report };
}

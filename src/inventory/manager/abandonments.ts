import type { ComponentStatus } from '../../api/inventory/cluster-inventory.ts';
import { clusterInventories } from '../../api/inventory/names.ts';
import { apiVersionOf } from '../../api/object.ts';
import type { Journal } from '../../audit/journal.ts';
import { describe } from '../../kit/errors.ts';
import { regarding } from '../../kube/event-object.ts';
import type { EventRecorder } from '../../kube/event-recorder.ts';
import { isOlder } from '../../kube/resource-version.ts';
import type { Log } from '../../observe/log.ts';
import { abandonmentOf, abandonmentText, type Entry, isAbandoned } from '../entry.ts';

interface AbandonmentReporterDeps {
  readonly journal: Journal;
  readonly events: EventRecorder;
  readonly log: Log;
  /** Named by the journal if the user who abandoned a component is unknown. */
  readonly account: string;
}

/** The last report: its text, and the version of the entry that it was about. */
interface Reported {
  readonly text: string;
  readonly resourceVersion: string;
}

/** Records in the log, an Event, and the journal who abandoned a component, and why. */
export class AbandonmentReporter {
  readonly #deps: AbandonmentReporterDeps;
  /** By entry UID and component. */
  readonly #reported = new Map<string, Map<string, Reported>>();

  constructor(deps: AbandonmentReporterDeps) {
    this.#deps = deps;
  }

  /** After a status write: reports abandonments that are new in it, or changed user or reason. */
  statusWritten(
    before: Entry,
    components: readonly ComponentStatus[],
    isRecorded: (component: string) => boolean,
  ): void {
    for (const { name, reason, message } of components) {
      const old = before.components.find((status) => status.name === name);
      if (!isAbandoned(before, name)) this.#undone(before, name);
      else if (reason === 'Abandoned' && (old?.reason !== reason || old.message !== message))
        this.#report(before, name, isRecorded(name));
    }
  }

  /** Reports an abandonment of a component with a run record, once per text. */
  report(entry: Entry, component: string): void {
    this.#report(entry, component, true);
  }

  /** A status write may end after a report about a later version of the entry. */
  #undone({ ref, resourceVersion }: Entry, component: string): void {
    const reported = this.#reported.get(ref.uid);
    const last = reported?.get(component);
    if (last && isOlder(last.resourceVersion, resourceVersion)) reported?.delete(component);
  }

  #report(entry: Entry, component: string, isRecorded: boolean): void {
    const { journal, log, events, account } = this.#deps;
    const { ref } = entry;
    const { user = account, reason } = abandonmentOf(entry, component);
    const text = abandonmentText(entry, component);
    const reported = this.#reported.get(ref.uid) ?? new Map<string, Reported>();
    if (reported.get(component)?.text === text) return;
    this.#reported.set(ref.uid, reported.set(component, { text, resourceVersion: entry.resourceVersion }));
    const consequence = isRecorded
      ? 'the resources that it created were not torn down'
      : 'the server has no run of it for this entry, so it tears down nothing';
    const message = `component ${component} was ${text}; ${consequence}`;
    const fields = { entry: `${ref.namespace}/${ref.name}`, component };
    log.warn(`component abandoned; ${consequence}`, { ...fields, user, reason });
    events.record({
      regarding: regarding(clusterInventories, ref),
      type: 'Warning',
      reason: 'Abandoned',
      action: 'Abandon',
      note: message,
    });
    journal
      .append({
        event: 'revocation',
        verdict: 'revoked',
        who: { user },
        what: {
          operation: 'ABANDON',
          apiVersion: apiVersionOf(clusterInventories),
          kind: clusterInventories.kind,
          ...ref,
        },
        component,
        reason,
        code: 'Abandoned',
        message,
      })
      .catch((error: unknown) =>
        log.error('failed to audit the abandonment of a component', { ...fields, error: describe(error) }),
      );
  }

  forget(entryUid: string): void {
    this.#reported.delete(entryUid);
  }

  clear(): void {
    this.#reported.clear();
  }
}

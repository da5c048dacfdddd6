import { isDeepStrictEqual } from 'node:util';
import { forceAnnotation, kubeconfigOutput } from '../../api/inventory/names.ts';
import { isPointer, isWithin, type JsonPointer, pointerOf, valueAt } from '../../kit/json-pointer.ts';
import { sameJson } from '../../kit/json-value.ts';
import type { RunRecord } from '../core/run-record.ts';
import { type Lane, type Trigger, trigger, triggerReasons } from '../core/triggers.ts';
import type { Entry } from '../entry.ts';
import type { Registration } from '../registration.ts';
import { isApplicable, mayRun } from './entry-snapshot.ts';

/** Whether any content that components can read has changed. */
export const isContentChanged = (before: Entry, after: Entry): boolean => !sameJson(before.content, after.content);

/**
 * Triggers for one component from a change of an entry: a changed force annotation, a changed path that the component reads or waits for,
 * and a change of what `mayRun` returns. A component may wait until no component reads a path (`noReaders`; `EntryReaders` says which
 * components count). Any change of content triggers such a component, because this function does not know the readers. `isWanted` decides
 * whether a trigger starts a run. `record` is undefined if the component has not run. `contentChanged` is the result of `isContentChanged`,
 * computed once for all components.
 */
export function triggersOf(
  before: Entry,
  after: Entry,
  registration: Registration,
  record: RunRecord | undefined,
  contentChanged: boolean,
): Trigger[] {
  const triggers: Trigger[] = [];
  const force = forceAnnotation(registration.name);
  if (before.annotations[force] !== after.annotations[force]) {
    triggers.push(trigger(triggerReasons.forced));
  }
  if (contentChanged) {
    const differs = (path: JsonPointer): boolean =>
      !sameJson(valueAt(before.content, path), valueAt(after.content, path));
    triggers.push(...changedReads(before, after, registration, differs).map(readChanged));
    const awaited = record?.lastOutcome?.missing.find(
      ({ path, want }) => want === 'noReaders' || (isPointer(path) && differs(path)),
    );
    if (awaited) triggers.push(trigger(triggerReasons.inputArrived, { detail: awaited.path }));
  }
  if (mayRunChanged(before, after, registration, record)) {
    triggers.push(
      before.deleting === after.deleting
        ? trigger(triggerReasons.configChanged, { detail: changedField(before, after) })
        : trigger(triggerReasons.deleting),
    );
  }
  return triggers;
}

/**
 * The paths that the component reads and that changed. If `enabled` changed without an effect, because its default is true, returns
 * `/spec/components/NAME` in its place, or only the other paths if one of them is below `/spec/components/NAME`.
 */
function changedReads(
  before: Entry,
  after: Entry,
  { name, reads }: Registration,
  differs: (path: JsonPointer) => boolean,
): readonly JsonPointer[] {
  const changed = reads.filter(differs);
  const settings = pointerOf('spec', 'components', name);
  const isEnabled = (path: JsonPointer): boolean => path === pointerOf('spec', 'components', name, 'enabled');
  if (before.disabled.has(name) !== after.disabled.has(name) || !changed.some(isEnabled)) return changed;
  const others = changed.filter((path) => !isEnabled(path));
  return others.some((path) => isWithin(path, settings)) ? others : [settings, ...others];
}

const readChanged = (path: JsonPointer): Trigger =>
  trigger(isWithin(path, '/spec') ? triggerReasons.configChanged : triggerReasons.inputChanged, { detail: path });

const kubeconfigVersion: JsonPointer = `${kubeconfigOutput}/version`;

/**
 * Whether a new kubeconfig replaced an earlier one. The earlier one stays valid for a while, so the server may spread the runs of its
 * readers.
 */
export function isKubeconfigReplaced(before: Entry, after: Entry): boolean {
  const old = valueAt(before.content, kubeconfigVersion);
  const now = valueAt(after.content, kubeconfigVersion);
  return old !== undefined && now !== undefined && !sameJson(old, now);
}

/** Whether a changed kubeconfig caused the trigger. */
export const isKubeconfigTrigger = ({ reason, detail }: Trigger): boolean =>
  reason === triggerReasons.inputChanged &&
  detail !== undefined &&
  isPointer(detail) &&
  isWithin(detail, kubeconfigOutput);

function mayRunChanged(
  before: Entry,
  after: Entry,
  registration: Registration,
  record: RunRecord | undefined,
): boolean {
  // Both values are the same before and after the change, because neither depends on the content of the entry.
  const circumstances = { refused: false, recorded: record !== undefined };
  return !isDeepStrictEqual(mayRun(before, registration, circumstances), mayRun(after, registration, circumstances));
}

function changedField(before: Entry, after: Entry): string | undefined {
  if (before.suspended !== after.suspended) return '/spec/suspend';
  if (!isDeepStrictEqual(before.annotations, after.annotations)) return '/metadata/annotations';
  return isDeepStrictEqual(before.labels, after.labels) ? undefined : '/metadata/labels';
}

/**
 * Returns a trigger for `isWanted`, which compares the entry with its record. Used at startup, when the entry appears, and at each resync,
 * because no earlier version exists to compare. A component without a record gets none if it does not apply to the entry, or if the entry is
 * being deleted. `lane` is the queue lane of the trigger.
 */
export function syncTrigger(
  entry: Entry,
  registration: Registration,
  isRecorded: boolean,
  lane: Lane,
): Trigger | undefined {
  if (!isRecorded && (entry.deleting || !isApplicable(entry, registration))) return undefined;
  return trigger(isRecorded ? triggerReasons.inputChanged : triggerReasons.created, { lane });
}

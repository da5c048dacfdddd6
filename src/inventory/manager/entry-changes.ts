import { isDeepStrictEqual } from 'node:util';
import { forceAnnotation, kubeconfigOutput } from '../../api/inventory/names.ts';
import { isPointer, isWithin, type JsonPointer, valueAt } from '../../kit/json-pointer.ts';
import { sameJson } from '../../kit/json-value.ts';
import type { RunRecord } from '../core/run-record.ts';
import { lanes, type Trigger, trigger, triggerReasons } from '../core/triggers.ts';
import type { Entry } from '../entry.ts';
import type { Registration } from '../registration.ts';
import { isApplicable, mayRun } from './entry-snapshot.ts';

/** Whether any content that components can read has changed. */
export const isContentChanged = (before: Entry, after: Entry): boolean => !sameJson(before.content, after.content);

/**
 * Triggers for one component from a change of an entry. Fields that the component does not read cause no trigger. Whether a trigger starts
 * a run depends on the digest.
 */
export function triggersOf(
  before: Entry,
  after: Entry,
  registration: Registration,
  record: RunRecord | undefined,
  contentDiffers: boolean,
): Trigger[] {
  const triggers: Trigger[] = [];
  const force = forceAnnotation(registration.name);
  if (before.annotations[force] !== after.annotations[force]) {
    triggers.push(trigger(triggerReasons.forced));
  }
  if (contentDiffers) {
    const differs = (path: JsonPointer): boolean =>
      !sameJson(valueAt(before.content, path), valueAt(after.content, path));
    triggers.push(...registration.reads.filter(differs).map(readChanged));
    const awaited = record?.lastOutcome?.missing.find(
      ({ path, want }) => want === 'noReaders' || (isPointer(path) && differs(path)),
    );
    if (awaited) triggers.push(trigger(triggerReasons.inputArrived, { about: awaited.path }));
  }
  if (mayRunChanged(before, after, registration, record)) {
    triggers.push(trigger(triggerReasons.configChanged, { about: changedField(before, after) }));
  }
  return triggers;
}

const readChanged = (path: JsonPointer): Trigger =>
  trigger(isWithin(path, '/spec') ? triggerReasons.configChanged : triggerReasons.inputChanged, { about: path });

const kubeconfigVersion: JsonPointer = `${kubeconfigOutput}/version`;

/** Whether the kubeconfig was replaced by another. The old one stays valid for a while, so its readers need not run at once. */
export function isRotated(before: Entry, after: Entry): boolean {
  const old = valueAt(before.content, kubeconfigVersion);
  const now = valueAt(after.content, kubeconfigVersion);
  return old !== undefined && now !== undefined && !sameJson(old, now);
}

/** Whether a changed kubeconfig caused the trigger. */
export const isKubeconfigTrigger = ({ reason, about }: Trigger): boolean =>
  reason === triggerReasons.inputChanged &&
  about !== undefined &&
  isPointer(about) &&
  isWithin(about, kubeconfigOutput);

function mayRunChanged(
  before: Entry,
  after: Entry,
  registration: Registration,
  record: RunRecord | undefined,
): boolean {
  const circumstances = { refused: false, recorded: record !== undefined };
  return !isDeepStrictEqual(mayRun(before, registration, circumstances), mayRun(after, registration, circumstances));
}

function changedField(before: Entry, after: Entry): string | undefined {
  if (before.suspended !== after.suspended) return '/spec/suspend';
  return isDeepStrictEqual(before.labels, after.labels) ? undefined : '/metadata/labels';
}

/** Trigger for an entry that is new to this process; undefined if the component has nothing to do. */
export function firstTrigger(
  entry: Entry,
  registration: Registration,
  isRecorded: boolean,
  isStartup: boolean,
): Trigger | undefined {
  if (!isRecorded && (entry.deleting || !isApplicable(entry, registration))) return undefined;
  const lane = isStartup ? lanes.time : lanes.manual;
  return trigger(isRecorded ? triggerReasons.inputChanged : triggerReasons.created, { lane });
}

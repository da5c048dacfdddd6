import { isDeepStrictEqual } from 'node:util';
import { forceAnnotation, kubeconfigOutput } from '../../api/inventory/names.ts';
import { isPointer, isWithin, type JsonPointer, pointerOf, valueAt } from '../../kit/json-pointer.ts';
import { sameJson } from '../../kit/json-value.ts';
import { mayRun } from '../core/facts.ts';
import type { RunRecord } from '../core/run-record.ts';
import { type Trigger, trigger, triggerReasons } from '../core/triggers.ts';
import type { Entry } from '../entry.ts';
import type { Registration } from '../registration.ts';

export const isContentChanged = (before: Entry, after: Entry): boolean => !sameJson(before.content, after.content);

/**
 * Triggers for one component: changed force annotation, read or awaited path, or result of
 * `mayRun`. Any change of content triggers one that waits for `noReaders`, because readers are
 * unknown here.
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

/** Replaces an `enabled` that changed without effect by `/spec/components/NAME` or a path below. */
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

/** The earlier one stays valid for a while, so the runs of its readers may be spread. */
export function isKubeconfigReplaced(before: Entry, after: Entry): boolean {
  const old = valueAt(before.content, kubeconfigVersion);
  const now = valueAt(after.content, kubeconfigVersion);
  return old !== undefined && now !== undefined && !sameJson(old, now);
}

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
  // Neither depends on the content of the entry, so they are the same before and after.
  const circumstances = { refused: false, recorded: record !== undefined };
  return !isDeepStrictEqual(mayRun(before, registration, circumstances), mayRun(after, registration, circumstances));
}

function changedField(before: Entry, after: Entry): string | undefined {
  if (before.suspended !== after.suspended) return '/spec/suspend';
  if (!isDeepStrictEqual(before.annotations, after.annotations)) return '/metadata/annotations';
  return isDeepStrictEqual(before.labels, after.labels) ? undefined : '/metadata/labels';
}

import { abandonAnnotation, maxEntryBytes } from '../../api/inventory/names.ts';
import type { Inputs } from '../core/step.ts';
import type { Entry } from '../entry.ts';
import type { Registration } from '../registration.ts';

/** Whether a component is for an entry at all. */
export function isFor(entry: Entry, registration: Registration): boolean {
  return registration.modes.includes(entry.mode) && registration.selects(entry.labels);
}

/** What is known besides the entry and the registration. */
export interface Circumstances {
  readonly refused: boolean;
  /** It has a record: it ran, or began to. */
  readonly recorded: boolean;
}

/** What a component may be asked to do for an entry now, or why nothing. */
export function mayRun(
  entry: Entry,
  registration: Registration,
  { refused, recorded }: Circumstances,
): Inputs['mayRun'] {
  const { name } = registration;
  if (entry.deleting) {
    if (Object.hasOwn(entry.annotations, abandonAnnotation(name))) return { may: 'no', why: 'Abandoned' };
    if (!recorded) return { may: 'no', why: 'NotApplicable' };
    if (refused) return { may: 'no', why: 'RegistrationRefused' };
    return entry.suspended ? { may: 'no', why: 'Suspended' } : { may: 'delete' };
  }
  if (!isFor(entry, registration)) return { may: 'no', why: 'NotApplicable' };
  if (entry.disabled.has(name)) return { may: 'no', why: 'Disabled' };
  if (refused) return { may: 'no', why: 'RegistrationRefused' };
  if (entry.bytes > maxEntryBytes) return { may: 'no', why: 'TooLarge' };
  return entry.suspended ? { may: 'no', why: 'Suspended' } : { may: 'reconcile' };
}

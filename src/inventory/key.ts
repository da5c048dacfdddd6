import { runIdOf } from '../api/inventory/names.ts';

/** One component of one entry: the unit that is queued, run, and recorded. */
export interface ComponentKey {
  readonly entryUid: string;
  readonly component: string;
}

/** Text form for queues and maps. Neither part can contain a slash. */
export const keyText = ({ entryUid, component }: ComponentKey): string => `${entryUid}/${component}`;

export function parseKey(text: string): ComponentKey | undefined {
  const [entryUid = '', component = '', ...rest] = text.split('/');
  return entryUid && component && rest.length === 0 ? { entryUid, component } : undefined;
}

/** Run ID in requests and reports. Not secret: a report also needs the token of the run. */
export const runId = ({ entryUid, component }: ComponentKey, seq: number): string => runIdOf(entryUid, component, seq);

/** Parses an untrusted run ID. */
export function parseRunId(text: string): (ComponentKey & { readonly seq: number }) | undefined {
  const [, entryUid, component, seq] =
    /^([0-9a-zA-Z-]{1,128})\.([a-z][-a-z0-9]{0,39})\.([1-9]\d{0,14})$/.exec(text) ?? [];
  return entryUid && component && seq ? { entryUid, component, seq: Number(seq) } : undefined;
}

import { runIdOf } from '../api/inventory/names.ts';

/** One component of one entry: what is queued, run and recorded. By uid, so that an entry made anew under the same name is another. */
export interface ComponentKey {
  readonly entryUid: string;
  readonly component: string;
}

/** The form in which queues and maps have it. Neither part can hold a slash. */
export const keyText = ({ entryUid, component }: ComponentKey): string => `${entryUid}/${component}`;

export function readKey(text: string): ComponentKey | undefined {
  const [entryUid = '', component = '', ...rest] = text.split('/');
  return entryUid && component && rest.length === 0 ? { entryUid, component } : undefined;
}

/** One run of it, as components give it back. Guessing it opens nothing: whoever reports needs the token of the run. */
export const runId = ({ entryUid, component }: ComponentKey, seq: number): string => runIdOf(entryUid, component, seq);

/** Hostile input: the path of a callback ends with it. */
export function readRunId(text: string): (ComponentKey & { readonly seq: number }) | undefined {
  const [, entryUid, component, seq] =
    /^([0-9a-zA-Z-]{1,128})\.([a-z][-a-z0-9]{0,39})\.([1-9]\d{0,14})$/.exec(text) ?? [];
  return entryUid && component && seq ? { entryUid, component, seq: Number(seq) } : undefined;
}

import { useEffect, useId, useState } from 'preact/hooks';
import type { RunCall, RunResult } from '../wire.ts';
import { run } from './api.ts';
import { after, isoOfLocal } from './time.ts';
import { Alert, Code, lineOf } from './ui.tsx';

/** The same command for a terminal. */
export const Line = ({ result }: { readonly result: RunResult }) => (
  <details>
    <summary>The same in a terminal</summary>
    <Code text={result.line} />
  </details>
);

/** What a command printed to standard error. */
export function Messages({ result }: { readonly result: RunResult | undefined }) {
  if (!result || result.messages.length === 0) return null;
  return (
    <div role={result.exitCode === 0 ? 'status' : 'alert'} class={result.exitCode === 0 ? 'note' : 'error'}>
      {result.messages.map(lineOf)}
    </div>
  );
}

/** Of commands that print a List. */
export const itemsOf = <T,>(result: RunResult | undefined): readonly T[] | undefined =>
  (result?.output as { readonly items?: readonly T[] } | undefined)?.items;

export interface Read<T = RunResult> {
  readonly result?: T;
  /** Of a call that did not reach the client. */
  readonly error?: string;
  readonly busy: boolean;
}

const settled = <T,>(call: Promise<T>): Promise<Read<T>> =>
  call.then(
    (result) => ({ result, busy: false }),
    ({ message }: Error) => ({ error: message, busy: false }),
  );

/** Reads `delayMs` after `of` has changed, which aborts the call before; its result stays meanwhile. */
export function useRead<T>(read: (signal: AbortSignal) => Promise<T>, of: readonly unknown[], delayMs = 0): Read<T> {
  const [state, set] = useState<Read<T>>({ busy: true });
  useEffect(() => {
    const stop = new AbortController();
    set((last) => ({ ...last, busy: true }));
    const cancel = after(delayMs, () => {
      void settled(read(stop.signal)).then((found) => stop.signal.aborted || set(found));
    });
    return () => {
      cancel();
      stop.abort();
    };
  }, [...of, delayMs]);
  return state;
}

export const useRun = (command: RunCall, delayMs?: number): Read =>
  useRead((signal) => run(command, signal), [JSON.stringify(command)], delayMs);

/** Follows calls, one at a time. */
export function useAction<T = RunResult>(): readonly [Read<T>, start: (call: Promise<T>) => Promise<T | undefined>] {
  const [state, set] = useState<Read<T>>({ busy: false });
  const start = async (call: Promise<T>): Promise<T | undefined> => {
    set({ busy: true });
    const found = await settled(call);
    set(found);
    return found.result;
  };
  return [state, start];
}

/** Why the last command failed, and its line. */
export function Failed({ of: { result, error } }: { readonly of: Read }) {
  return (
    <>
      {error !== undefined && <Alert>{error}</Alert>}
      <Messages result={result} />
      {result && result.exitCode !== 0 && <Line result={result} />}
    </>
  );
}

export interface FlagField {
  /** Of the command. */
  readonly flag: string;
  readonly label: string;
  readonly hint?: string | undefined;
  readonly placeholder?: string | undefined;
  readonly required?: boolean;
  /** Is typed as a date and a time, in the time zone of the reader. */
  readonly isTime?: boolean;
}

/** The flags that the reader has typed, and the labelled fields for them. */
export function useFlags(fields: readonly FlagField[]) {
  const [values, set] = useState<Readonly<Record<string, string>>>({});
  const id = useId();
  const flags = fields.flatMap(({ flag, isTime }) => {
    const value = values[flag]?.trim() ?? '';
    return value === '' ? [] : [[flag, isTime ? isoOfLocal(value) : value] as const];
  });
  const inputs = fields.map(({ flag, label, hint, placeholder, required = false, isTime }) => (
    <p class="field" key={flag}>
      <label for={id + flag}>
        {label}
        {!required && <span class="quiet"> (optional)</span>}
      </label>
      <input
        id={id + flag}
        {...(isTime ? { type: 'datetime-local' } : { placeholder })}
        value={values[flag] ?? ''}
        required={required}
        autocomplete="off"
        aria-describedby={hint && `${id + flag}-hint`}
        onInput={({ currentTarget }) => set({ ...values, [flag]: currentTarget.value })}
      />
      <span class="quiet" id={`${id + flag}-hint`}>
        {hint}
      </span>
    </p>
  ));
  return [Object.fromEntries(flags), inputs] as const;
}

import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useId, useState } from 'preact/hooks';
import type { RunCall, RunResult } from '../wire.ts';
import { run } from './api.ts';
import { useApp } from './app.ts';
import { after, isoOfLocal } from './time.ts';
import { Alert, Code, Dialog } from './ui.tsx';

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
      {result.messages.map((line) => (
        <p key={line}>{line}</p>
      ))}
    </div>
  );
}

export interface Read {
  /** Of the last call that came back. Of `useRun`, it stays while the next one runs. */
  readonly result: RunResult | undefined;
  /** Of a call that did not reach the client. */
  readonly error: string | undefined;
  readonly busy: boolean;
}

const idle: Read = { result: undefined, error: undefined, busy: false };

/**
 * Runs a command that reads, `delayMs` after it has changed; a change aborts the run before. Runs
 * nothing while `command` is undefined.
 */
export function useRun(command: RunCall | undefined, delayMs = 0): Read {
  const [state, set] = useState({ ...idle, busy: true });
  const text = JSON.stringify(command);
  useEffect(() => {
    if (text === undefined) return undefined;
    const stop = new AbortController();
    const settle = (found: Partial<Read>): void => {
      if (!stop.signal.aborted) set({ ...idle, ...found });
    };
    set((last) => ({ ...last, busy: true }));
    const cancel = after(delayMs, () => {
      run(JSON.parse(text) as RunCall, stop.signal).then(
        (result) => settle({ result }),
        (error: Error) => settle({ error: error.message }),
      );
    });
    return () => {
      cancel();
      stop.abort();
    };
  }, [text, delayMs]);
  return state;
}

export interface Action extends Read {
  /** Resolves to the result if the command succeeded. */
  start(call: RunCall): Promise<RunResult | undefined>;
}

/** Runs commands one at a time, and keeps the result of the last one. */
export function useAction(): Action {
  const [state, set] = useState(idle);
  const start = async (call: RunCall): Promise<RunResult | undefined> => {
    set({ ...idle, busy: true });
    try {
      const result = await run(call);
      set({ ...idle, result });
      return result.exitCode === 0 ? result : undefined;
    } catch (error) {
      set({ ...idle, error: error instanceof Error ? error.message : String(error) });
      return undefined;
    }
  };
  return { ...state, start };
}

/** Why the last command failed, and its line. Nothing while it runs. */
export function Failed({ action: { result, error } }: { readonly action: Pick<Read, 'result' | 'error'> }) {
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
export function useFlags(
  fields: readonly FlagField[],
): readonly [flags: Readonly<Record<string, string>>, fields: readonly JSX.Element[]] {
  const [values, set] = useState<Readonly<Record<string, string>>>({});
  const flags = fields.flatMap(({ flag, isTime }) => {
    const value = values[flag]?.trim() ?? '';
    return value === '' ? [] : [[flag, isTime ? isoOfLocal(value) : value] as const];
  });
  const onValue = (flag: string) => (event: { readonly currentTarget: HTMLInputElement }) =>
    set({ ...values, [flag]: event.currentTarget.value });
  const elements = fields.map((field) => (
    <Field key={field.flag} {...field} value={values[field.flag] ?? ''} onInput={onValue(field.flag)} />
  ));
  return [Object.fromEntries(flags), elements];
}

interface FieldProps extends FlagField {
  readonly value: string;
  readonly onInput: (event: { readonly currentTarget: HTMLInputElement }) => void;
}

function Field({ label, value, onInput, hint, placeholder, required = false, isTime }: FieldProps) {
  const id = useId();
  const described = hint === undefined ? undefined : `${id}-hint`;
  const common = { id, value, required, autocomplete: 'off', 'aria-describedby': described, onInput };
  return (
    <p class="field">
      <label for={id}>
        {label}
        {required ? '' : <span class="quiet"> (optional)</span>}
      </label>
      {isTime ? <input {...common} type="datetime-local" /> : <input {...common} placeholder={placeholder} />}
      <span class="quiet" id={described}>
        {hint}
      </span>
    </p>
  );
}

interface CommandDialogProps {
  readonly title: string;
  /** Of the button, such as `Approve`. */
  readonly verb: string;
  readonly call: RunCall;
  readonly fields: readonly FlagField[];
  /** Spoken and shown after it succeeded, such as `approved`. */
  readonly done: string;
  readonly onClose: () => void;
  /** What the person must know before. */
  readonly children?: ComponentChildren;
}

/** Asks for flags of a command, and runs it. */
export function CommandDialog({ title, verb, call, fields, done, onClose, children }: CommandDialogProps) {
  const { say } = useApp();
  const action = useAction();
  const [flags, inputs] = useFlags(fields);
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const dialog = (event.currentTarget as Element).closest('dialog');
    const result = await action.start({ ...call, flags: { ...call.flags, ...flags } });
    if (!result) return;
    dialog?.close();
    say(done, result);
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <form onSubmit={submit}>
        {children}
        {inputs}
        <Failed action={action} />
        <p class="actions">
          <button type="submit" class="main" disabled={action.busy}>
            {action.busy ? `${verb} …` : verb}
          </button>
          <button type="button" onClick={(event) => event.currentTarget.closest('dialog')?.close()}>
            Cancel
          </button>
        </p>
      </form>
    </Dialog>
  );
}

import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { span } from '../../times.ts';
import type { RunCall, RunResult } from '../wire.ts';
import { run } from './api.ts';
import { useApp } from './app.ts';
import { localTime, useNow } from './time.ts';

/** A link to a path of the console. */
export function Go({
  to,
  children,
  current,
}: {
  readonly to: string;
  readonly children: ComponentChildren;
  /** It is the page that is shown. */
  readonly current?: boolean;
}) {
  const { go } = useApp();
  const onClick = (event: MouseEvent): void => {
    if (event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    go(to);
  };
  return (
    <a href={to} aria-current={current ? 'page' : undefined} onClick={onClick}>
      {children}
    </a>
  );
}

export interface Column<T> {
  readonly title: string;
  readonly cell: (row: T) => ComponentChildren;
  /** Hidden on narrow screens. */
  readonly wide?: boolean;
}

interface TableProps<T> {
  /** What the table has, for screen readers. */
  readonly caption: string;
  readonly columns: readonly Column<T>[];
  readonly rows: readonly T[];
  readonly keyOf: (row: T) => string;
  /** Shown in place of rows. */
  readonly empty: ComponentChildren;
}

/** Of `rows`, at first; more with a button, so that 10,000 rows cost nothing. */
const SHOWN = 100;

export function Table<T>({ caption, columns, rows, keyOf, empty }: TableProps<T>) {
  const [shown, setShown] = useState(SHOWN);
  if (rows.length === 0) return <p class="empty">{empty}</p>;
  return (
    <>
      <table>
        <caption>{caption}</caption>
        <thead>
          <tr>
            {columns.map(({ title, wide }) => (
              <th key={title} scope="col" class={wide ? 'wide' : undefined}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, shown).map((row) => (
            <tr key={keyOf(row)}>
              {columns.map(({ title, cell, wide }) => (
                <td key={title} data-title={title} class={wide ? 'wide' : undefined}>
                  {cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length > shown && (
        <button type="button" onClick={() => setShown(shown + 10 * SHOWN)}>
          Show more ({rows.length - shown} are hidden)
        </button>
      )}
    </>
  );
}

/** `in 12m`, and its time. Screen readers hear it once a minute. */
export function Countdown({ endsMs }: { readonly endsMs: number }) {
  const now = useNow();
  const left = span(endsMs - now);
  return (
    <time
      dateTime={new Intl.DateTimeFormat('sv', { dateStyle: 'short', timeStyle: 'medium' }).format(endsMs)}
      title={localTime(endsMs)}
    >
      <span role="timer" aria-hidden="true">
        {left}
      </span>
      <span class="hidden" aria-live="polite">
        {span(Math.ceil((endsMs - now) / 60_000) * 60_000)} left
      </span>
    </time>
  );
}

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

export interface Action {
  readonly busy: boolean;
  readonly result: RunResult | undefined;
  /** Of a call that did not reach the client. */
  readonly error: string | undefined;
  /** Resolves to whether the command succeeded. */
  start(call: RunCall): Promise<boolean>;
}

/** Runs commands one at a time, and keeps the result of the last one. */
export function useAction(): Action {
  const [state, set] = useState<Omit<Action, 'start'>>({ busy: false, result: undefined, error: undefined });
  const start = async (call: RunCall): Promise<boolean> => {
    set({ busy: true, result: undefined, error: undefined });
    try {
      const result = await run(call);
      set({ busy: false, result, error: undefined });
      return result.exitCode === 0;
    } catch (error) {
      set({ busy: false, result: undefined, error: error instanceof Error ? error.message : String(error) });
      return false;
    }
  };
  return { ...state, start };
}

/** A native modal dialog: Escape closes it, and the focus returns. */
export function Dialog({
  title,
  onClose,
  children,
}: {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}) {
  const ref = useRef<HTMLDialogElement>(null);
  useEffect(() => ref.current?.showModal(), []);
  return (
    <dialog ref={ref} onClose={onClose} aria-label={title}>
      <h2>{title}</h2>
      {children}
    </dialog>
  );
}

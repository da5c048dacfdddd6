import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useId, useMemo, useRef, useState } from 'preact/hooks';
import { span } from '../../times.ts';
import type { Section } from '../wire.ts';
import { useApp } from './app.ts';
import { isoTime, localTime, useNow } from './time.ts';

/** The heading of a page, and the title of the window. Gets the focus after a navigation. */
export function Title({ children }: { readonly children: string }) {
  useEffect(() => {
    document.title = `${children} · drawbridge`;
  }, [children]);
  return <h1 tabIndex={-1}>{children}</h1>;
}

type Link = Readonly<{ to: string; children: ComponentChildren; class?: string; 'aria-current'?: 'page' | undefined }>;

/** A link to a path of the console. */
export function Go({ to, children, ...rest }: Link) {
  const { go } = useApp();
  const onClick = (event: MouseEvent): void => {
    if (event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    go(to);
  };
  return (
    <a href={to} {...rest} onClick={onClick}>
      {children}
    </a>
  );
}

/** A link out of the console. */
export const Out = ({ href }: { readonly href: string }) => (
  <a href={href} target="_blank" rel="noreferrer">
    {href}
  </a>
);

/** A button that submits nothing. */
export const Button = (props: JSX.IntrinsicElements['button']) => <button type="button" {...props} />;

export const Alert = ({ children }: { readonly children: ComponentChildren }) => (
  <p role="alert" class="error">
    {children}
  </p>
);

export type Tone = 'good' | 'wait' | 'warn' | 'bad' | 'off';

/** The color repeats what the word says. */
export const Chip = ({ tone, children }: { readonly tone: Tone; readonly children: ComponentChildren }) => (
  <span class="chip" style={{ '--tone': `var(--${tone})` }}>
    {children}
  </span>
);

const toneOf: Readonly<Record<string, Tone>> = { Waiting: 'wait', Open: 'good', Ending: 'warn', Denied: 'bad' };

export const StateChip = ({ state }: { readonly state: string }) => <Chip tone={toneOf[state] ?? 'off'}>{state}</Chip>;

/** Cells by the title of their column. */
export type Columns<T> = Readonly<Record<string, (row: T) => ComponentChildren>>;

/** A cell: what it is about, and below, what is less important. */
export const two = (main: ComponentChildren, ...under: readonly (string | false | undefined)[]) => (
  <>
    {main}
    <div class="quiet">{under.filter(Boolean).join(', ')}</div>
  </>
);

interface TableProps<T> {
  readonly caption: string;
  readonly columns: Columns<T>;
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
            {Object.keys(columns).map((title) => (
              <th key={title} scope="col">
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, shown).map((row) => (
            <tr key={keyOf(row)}>
              {Object.entries(columns).map(([title, cell]) => (
                <td key={title} data-title={title}>
                  {cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length > shown && (
        <Button onClick={() => setShown(shown + SHOWN)}>Show more ({rows.length - shown} are hidden)</Button>
      )}
    </>
  );
}

/** Rows whose text has all words that the reader types, and the field for them. `textOf`: of a module, or memoized. */
export function useFilter<T>(rows: readonly T[], textOf: (row: T) => string) {
  const [typed, set] = useState('');
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  const isFiltered = words.length > 0;
  const texts = useMemo(
    () => (isFiltered ? rows.map((row) => textOf(row).toLowerCase()) : []),
    [rows, textOf, isFiltered],
  );
  const found = useMemo(
    () => (isFiltered ? rows.filter((_, at) => words.every((word) => texts[at]?.includes(word))) : rows),
    [rows, texts, typed],
  );
  const count = typed === '' ? rows.length : `${found.length} of ${rows.length}`;
  const field = (
    <search class="row">
      <label>
        Filter <input type="search" value={typed} onInput={(event) => set(event.currentTarget.value)} />
      </label>
      <span role="status">{count}</span>
    </search>
  );
  return [found, field] as const;
}

/** What is known of something, as lines of each label. */
export const Facts = ({ title, entries }: { readonly title?: string; readonly entries: Section['entries'] }) => (
  <section>
    {title && <h2>{title}</h2>}
    <dl>
      {entries.map(([label, lines]) => (
        <div key={label}>
          <dt>{label}</dt>
          <dd>{lines.some((line) => line.startsWith(' ')) ? <pre>{lines.join('\n')}</pre> : lines.map(lineOf)}</dd>
        </div>
      ))}
    </dl>
  </section>
);

export const lineOf = (line: string) => <p key={line}>{line}</p>;

/** A time, in the time zone of the reader. */
export const Time = ({ ms }: { readonly ms: number }) => <time dateTime={isoTime(ms)}>{localTime(ms)}</time>;

/** `12m5s left`. `spoken`: screen readers say it once a minute. */
export function Countdown({ endsMs, spoken }: { readonly endsMs: number; readonly spoken?: boolean }) {
  const now = useNow();
  return (
    <time dateTime={isoTime(endsMs)} title={`until ${localTime(endsMs)}`}>
      <span aria-hidden="true">{span(endsMs - now)}</span>
      <span class="hidden" aria-live={spoken ? 'polite' : undefined}>
        {span(Math.ceil((endsMs - now) / 60_000) * 60_000)}
      </span>{' '}
      left
    </time>
  );
}

/** A command or an address, and a button that copies it. */
export function Code({ text }: { readonly text: string }) {
  const { say } = useApp();
  const copy = (): void => {
    // A line end would run the command before its reader has seen it in the terminal.
    navigator.clipboard.writeText(text.replace(/\s*\n\s*/g, ' ')).then(
      () => say('Copied'),
      () => say('The browser does not let the page copy: select the text'),
    );
  };
  return (
    <div class="code">
      <code>{text}</code>
      <Button onClick={copy}>Copy</Button>
    </div>
  );
}

type DialogProps = Readonly<{ title: string; onClose: () => void; children: ComponentChildren }>;

/** A native modal dialog: Escape closes it, and the focus returns. */
export function Dialog({ title, onClose, children }: DialogProps) {
  const ref = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => ref.current?.showModal(), []);
  return (
    <dialog ref={ref} onClose={onClose} aria-labelledby={id}>
      <h2 id={id}>{title}</h2>
      {children}
    </dialog>
  );
}

/** Closes the dialog around it. */
export const CloseButton = ({ children }: { readonly children: string }) => (
  <Button onClick={({ currentTarget }) => currentTarget.closest('dialog')?.close()}>{children}</Button>
);

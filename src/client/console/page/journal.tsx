import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { VerifyReport } from '../../../audit/verify/report.ts';
import { reportText } from '../../../audit/verify/report-text.ts';
import { type Journal, paths } from '../wire.ts';
import { read } from './api.ts';
import { Failed, Line, Messages, type Read, useAction } from './commands.tsx';
import { Alert, Button, type Tone } from './ui.tsx';

const namespaceKey = 'server-namespace';

/** The namespace of the server, and a field to choose it. */
export function useServerNamespace() {
  const [namespace, set] = useState(localStorage.getItem(namespaceKey) ?? 'drawbridge-system');
  const onChange = ({ currentTarget }: { readonly currentTarget: HTMLInputElement }): void => {
    const typed = currentTarget.value.trim();
    localStorage.setItem(namespaceKey, typed);
    set(typed);
  };
  const field = (
    <label class="row">
      Namespace of the server <input value={namespace} autocomplete="off" onChange={onChange} />
    </label>
  );
  return [namespace, field] as const;
}

/** The files of the journal, and how to get them. `view`: of a journal with files. */
export function JournalBox({ view }: { readonly view: (serverNamespace: string) => ComponentChildren }) {
  const [journal, setJournal] = useState<Journal>({ files: [], problems: [] });
  const [{ busy, error }, start] = useAction<void>();
  const [namespace, field] = useServerNamespace();
  const ask = async (...calls: readonly Parameters<typeof read>[1][]): Promise<void> => {
    for (const options of calls) setJournal(await read<Journal>(paths.journal, options));
  };
  const add = (files: FileList | null | undefined): Promise<void> =>
    start(ask(...[...(files ?? [])].map((file) => ({ method: 'PUT', query: { name: file.name }, body: file }))));
  const onDrop = (event: DragEvent): void => {
    event.preventDefault();
    void add(event.dataTransfer?.files);
  };
  const onChoose = ({ currentTarget }: { readonly currentTarget: HTMLInputElement }): void => {
    void add(currentTarget.files);
    // Otherwise it would not tell if the same files are chosen again.
    currentTarget.value = '';
  };
  useEffect(() => void start(ask({})), []);
  const { files, problems } = journal;
  return (
    <>
      <section aria-label="Journal" onDragOver={(event) => event.preventDefault()} onDrop={onDrop}>
        <h2>Journal of the server</h2>
        {files.length === 0 && <p>Read it from the logs of the server's pods. If it is on a volume, add its files.</p>}
        {files.map(({ name, bytes, from }) => (
          <p key={name}>
            {name} <span class="quiet">{`${Math.ceil(bytes / 1000)} kB, ${from === 'pod' ? 'a log' : 'added'}`}</span>
          </p>
        ))}
        {field}
        <div class="actions">
          <Button disabled={busy} onClick={() => start(ask({ method: 'POST', query: { namespace } }))}>
            Read the logs
          </Button>
          <label class="button">
            Add files
            <input type="file" class="hidden" multiple onChange={onChoose} />
          </label>
          {files.length > 0 && (
            <Button disabled={busy} onClick={() => start(ask({ method: 'DELETE' }))}>
              Forget all
            </Button>
          )}
          <span role="status">{busy && 'Reading …'}</span>
        </div>
        {error !== undefined && <Alert>{error}</Alert>}
        {problems.map((problem) => (
          <p key={problem} role="status" class="note">
            {problem}
          </p>
        ))}
      </section>
      {/* Other files are read anew. */}
      {files.length > 0 && (
        <div class="card" key={JSON.stringify(files)}>
          {view(namespace)}
        </div>
      )}
    </>
  );
}

const tones: Readonly<Record<number, Tone>> = { 0: 'good', 1: 'bad', 3: 'warn' };

/** What `audit verify` found, in its words; its last line is the verdict. */
export function Verdict({ of }: { readonly of: Read }) {
  if (!of.result) return <Failed of={of} />;
  const { output, exitCode } = of.result;
  const text = output === '' ? '' : reportText(withoutFolders(output as VerifyReport)).trimEnd();
  const [verdict, ...rest] = text.split('\n').toReversed();
  return (
    <>
      <Messages result={of.result} />
      {text !== '' && (
        <div role="status" class="note" style={{ '--tone': `var(--${tones[exitCode] ?? 'bad'})` }}>
          <strong>{verdict}</strong>
          <pre>{rest.toReversed().join('\n')}</pre>
        </div>
      )}
      <Line result={of.result} />
    </>
  );
}

/** The console keeps the files in a folder of its own. */
function withoutFolders(report: VerifyReport): VerifyReport {
  return JSON.parse(JSON.stringify(report), (key, value) =>
    key === 'file' ? String(value).replace(/^.*\//, '') : value,
  );
}

import { useEffect, useState } from 'preact/hooks';
import { paths, type RequestPage, type Section } from '../../wire.ts';
import { RequestActions } from '../actions.tsx';
import { get } from '../api.ts';
import { useApp } from '../app.ts';
import { Alert, Code, Countdown, Out, StateChip, Time, Title } from '../ui.tsx';
import { Marks } from './decide.tsx';
import { When } from './mine.tsx';

export function RequestDetails() {
  const { path, live, start } = useApp();
  const [, , namespace = '', kind = '', name = ''] = path.split('/');
  /** Or why it could not be read. */
  const [found, set] = useState<RequestPage | string>();
  const [asked, again] = useState(0);
  const row = live.requests.get(`${namespace}/${kind}/${name}`);
  // Reads again once the live row has changed.
  useEffect(() => {
    let settle: typeof set | undefined = set;
    get<RequestPage>(paths.request, { namespace, kind, name }).then(
      (page) => settle?.(page),
      ({ message }: Error) => settle?.(message),
    );
    return () => {
      settle = undefined;
    };
  }, [namespace, kind, name, row, asked]);
  return (
    <>
      <Title>{name}</Title>
      {found === undefined ? (
        <p role="status">Reading the request …</p>
      ) : typeof found === 'string' ? (
        <Alert>{found}</Alert>
      ) : (
        <Details page={found} isMine={found.row.requester === start.user} onClose={() => again(asked + 1)} />
      )}
    </>
  );
}

interface DetailsProps {
  readonly page: RequestPage;
  readonly isMine: boolean;
  readonly onClose: () => void;
}

function Details({ page: { row, sections, templateVersion, events }, isMine, onClose }: DetailsProps) {
  return (
    <>
      <article class="card">
        <h2>
          {row.requester} asks for {row.template} <StateChip state={row.state} />
          <Marks row={row} />
          <When row={row} spoken={isMine} />
        </h2>
        <p>{row.reason}</p>
        {row.link !== '' && <Out href={row.link} />}
        {row.why !== '' && <p>{row.why}</p>}
        {isMine && row.use !== '' && <Code text={row.use} />}
        {row.choice.startsWith('deny') && <p>You can only {row.choice}.</p>}
        {row.choice !== '' && <p>How long: {row.duration}</p>}
        {row.choice !== '' && row.decideByMs !== undefined && (
          <p>
            To decide: <Countdown endsMs={row.decideByMs} />
          </p>
        )}
        <RequestActions row={row} templateVersion={templateVersion} onClose={onClose} />
      </article>
      {sections.map((section) => (
        <Entries key={section.title} section={section} />
      ))}
      {events.length > 0 && (
        <section>
          <h2>What happened</h2>
          <ol class="list">
            {events.map(({ atMs, reason, message }) => (
              <li key={`${atMs} ${reason} ${message}`}>
                <Time ms={atMs} /> <b>{reason}</b> {message}
              </li>
            ))}
          </ol>
        </section>
      )}
    </>
  );
}

const Entries = ({ section: { title, entries } }: { readonly section: Section }) => (
  <section>
    <h2>{title || 'Request'}</h2>
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

const lineOf = (line: string) => <p key={line}>{line}</p>;

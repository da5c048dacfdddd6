import { useState } from 'preact/hooks';
import { paths, type RequestPage } from '../../wire.ts';
import { RequestActions } from '../actions.tsx';
import { read } from '../api.ts';
import { useApp } from '../app.ts';
import { useRead } from '../commands.tsx';
import { Alert, Code, Countdown, Facts, Out, StateChip, Time, Title } from '../ui.tsx';
import { Marks } from './decide.tsx';
import { When } from './mine.tsx';

export function RequestDetails() {
  const { path, live, start } = useApp();
  const [, , namespace = '', kind = '', name = ''] = path.split('/');
  const [asked, again] = useState(0);
  const row = live.requests.get(`${namespace}/${kind}/${name}`);
  // Reads again once the live row has changed.
  const { result, error } = useRead(
    () => read<RequestPage>(paths.request, { query: { namespace, kind, name } }),
    [namespace, kind, name, row, asked],
  );
  return (
    <>
      <Title>{name}</Title>
      {error !== undefined && <Alert>{error}</Alert>}
      {result && (
        <Details page={result} isMine={result.row.requester === start.user} onClose={() => again(asked + 1)} />
      )}
      {!result && error === undefined && <p role="status">Reading the request …</p>}
    </>
  );
}

type DetailsProps = Readonly<{ page: RequestPage; isMine: boolean; onClose: () => void }>;

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
        <Out href={row.link} />
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
        <Facts key={section.title} title={section.title || 'Request'} entries={section.entries} />
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

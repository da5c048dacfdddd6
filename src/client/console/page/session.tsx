import { useState } from 'preact/hooks';
import { CommandDialog } from './commands.tsx';

export interface SessionName {
  readonly namespace: string;
  readonly name: string;
}

/** Opens the player in a tab of its own, whose name is `about`: whose session it shows. */
export const PlayerLink = ({
  about,
  ...query
}: SessionName & { readonly from: 'sessions' | 'recordings'; readonly about: string }) => (
  <a class="button" href={`/player?${new URLSearchParams(query)}`} target={about}>
    {query.from === 'sessions' ? 'Watch' : 'Play'}
  </a>
);

export function EndSession({ namespace, name }: SessionName) {
  const [asks, setAsks] = useState(false);
  return (
    <>
      <button type="button" onClick={() => setAsks(true)}>
        End session
      </button>
      {asks && (
        <CommandDialog
          title="End this session?"
          verb="End session"
          done="Session ended"
          call={{ command: 'sessions kill', namespace, args: [name] }}
          fields={[]}
          onClose={() => setAsks(false)}
        >
          <p>The access stays open. To end it, too, revoke it.</p>
        </CommandDialog>
      )}
    </>
  );
}

import { useState } from 'preact/hooks';
import { CommandDialog } from './commands.tsx';

export interface SessionName {
  readonly namespace: string;
  readonly name: string;
}

interface PlayerLinkProps extends SessionName {
  readonly from: 'sessions' | 'recordings';
  /** Whose session it is, where. */
  readonly about: string;
}

/** Opens the player in a tab of its own, whose name says what it shows. */
export const PlayerLink = ({ about, ...query }: PlayerLinkProps) => (
  <a class="button" href={`/player?${new URLSearchParams({ ...query })}`} target={about}>
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

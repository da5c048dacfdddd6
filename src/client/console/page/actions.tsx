import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { RequestRow, RunCall } from '../wire.ts';
import { run } from './api.ts';
import { useApp } from './app.ts';
import { Failed, type FlagField, useAction, useFlags } from './commands.tsx';
import { Button, CloseButton, Dialog } from './ui.tsx';

/** A command, and the button that asks about it. */
interface Act {
  readonly verb: string;
  /** Spoken and shown after it succeeded. */
  readonly done: string;
  readonly command: RunCall['command'];
  readonly flags?: NonNullable<RunCall['flags']>;
  readonly fields: readonly FlagField[];
  /** Most people want it. */
  readonly isMain?: boolean;
}

export type SessionName = Readonly<{ namespace: string; name: string }>;

interface ActsProps {
  readonly acts: readonly Act[];
  readonly titleOf: (act: Act) => string;
  readonly namespace: string;
  readonly arg: string;
  /** A dialog has closed. */
  readonly onClose?: (() => void) | undefined;
  /** What the person must know before. */
  readonly children?: ComponentChildren;
}

function Acts({ acts, titleOf, namespace, arg, onClose, children }: ActsProps) {
  const [act, setAct] = useState<Act>();
  const close = (): void => {
    setAct(undefined);
    onClose?.();
  };
  return (
    <div class="actions">
      {acts.map((one) => (
        <Button key={one.verb} class={one.isMain ? 'main' : undefined} onClick={() => setAct(one)}>
          {one.verb}
        </Button>
      ))}
      {act && (
        <Dialog title={titleOf(act)} onClose={close}>
          <ActForm act={act} call={{ command: act.command, namespace, args: [arg] }}>
            {children}
          </ActForm>
        </Dialog>
      )}
    </div>
  );
}

/** Asks for flags of a command, and runs it. */
function ActForm({ act, call, children }: Readonly<{ act: Act; call: RunCall; children: ComponentChildren }>) {
  const { say } = useApp();
  const [read, start] = useAction();
  const [flags, inputs] = useFlags(act.fields);
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const dialog = (event.currentTarget as Element).closest('dialog');
    const result = await start(run({ ...call, flags: { ...act.flags, ...flags } }));
    if (result?.exitCode !== 0) return;
    dialog?.close();
    say(act.done, result);
  };
  return (
    <form onSubmit={submit}>
      {children}
      {inputs}
      <Failed of={read} />
      <p class="actions">
        <button type="submit" class="main" disabled={read.busy}>
          {read.busy ? `${act.verb} …` : act.verb}
        </button>
        <CloseButton>Cancel</CloseButton>
      </p>
    </form>
  );
}

/** Opens the player in a tab of its own, whose name is `about`: whose session it shows. */
export const PlayerLink = ({ about, ...query }: SessionName & Readonly<{ from: string; about: string }>) => (
  <a class="button" href={`/player?${new URLSearchParams(query)}`} target={about}>
    {query.from === 'sessions' ? 'Watch' : 'Play'}
  </a>
);

const end: Act = { verb: 'End session', done: 'Session ended', command: 'sessions kill', fields: [] };

export const EndSession = ({ namespace, name }: SessionName) => (
  <Acts acts={[end]} titleOf={() => 'End this session?'} namespace={namespace} arg={name}>
    <p>The access stays open. To end it, too, revoke it.</p>
  </Acts>
);

interface RequestActionsProps {
  readonly row: RequestRow;
  /** That the page shows: who approves has seen it. Without, there is no button to approve. */
  readonly templateVersion?: string;
  readonly onClose?: () => void;
}

/** Buttons for what this user can do about a request. */
export function RequestActions({ row, templateVersion, onClose }: RequestActionsProps) {
  const { start } = useApp();
  const { namespace, type, name } = row;
  return (
    <Acts
      acts={row.requester === start.user ? ownActs(row) : othersActs(row, templateVersion)}
      titleOf={({ verb, flags }) => `${verb} ${flags?.['about'] ?? ''} ${name}`}
      namespace={namespace}
      arg={`${type}/${name}`}
      onClose={onClose}
    />
  );
}

const reason: FlagField = { flag: 'reason', label: 'Reason' };

const endAct = (verb: string, done: string): Act => ({ verb, done, command: 'revoke', fields: [reason] });

function ownActs({ state, final, claimable, extendable }: RequestRow): readonly Act[] {
  const acts: Act[] = [];
  const by: FlagField = { flag: 'by', label: 'How much longer', placeholder: '30m', required: true };
  if (claimable) acts.push({ verb: 'Start', done: 'Started', command: 'claim', isMain: true, fields: [] });
  if (extendable) acts.push({ verb: 'Extend', done: 'Extension requested', command: 'extend', fields: [by, reason] });
  if (!final && state !== 'Ending')
    acts.push(state === 'Waiting' ? endAct('Withdraw', 'Withdrawn') : endAct('Give back', 'Given back'));
  return acts;
}

function othersActs({ about, choice, state, duration, uid }: RequestRow, templateVersion: string | undefined): Act[] {
  const acts: Act[] = [];
  const isReview = about === 'Review';
  const max = { flag: 'max', label: 'At most', placeholder: '30m', hint: `Empty: what it asks for (${duration}).` };
  if (choice.startsWith('approve') && templateVersion !== undefined)
    acts.push({
      verb: 'Approve',
      done: 'Approved',
      isMain: true,
      command: 'approve',
      flags: { about, uid, ...(isReview || templateVersion === '' ? {} : { 'template-version': templateVersion }) },
      fields: isReview ? [reason] : [max, reason],
    });
  if (choice !== '')
    acts.push({ verb: 'Deny', done: 'Denied', command: 'deny', flags: { about, uid }, fields: [reason] });
  if (state === 'Open') acts.push(endAct('Revoke', 'Revoked'));
  return acts;
}

/** For filters: what a person may remember of a request. */
export const textOfRow = (row: RequestRow): string =>
  `${row.key} ${row.template} ${row.requester} ${row.reason} ${row.state} ${row.pod}`;

import { useState } from 'preact/hooks';
import type { RequestRow, RunCall } from '../wire.ts';
import { useApp } from './app.ts';
import { CommandDialog, type FlagField } from './commands.tsx';

interface Act {
  /** Of the button. */
  readonly verb: string;
  readonly done: string;
  readonly command: RunCall['command'];
  readonly flags?: NonNullable<RunCall['flags']>;
  readonly fields: readonly FlagField[];
  /** Most people want it. */
  readonly isMain?: boolean;
}

interface RequestActionsProps {
  readonly row: RequestRow;
  /** That the page shows: who approves has seen it. Without, there is no button to approve. */
  readonly templateVersion?: string | undefined;
  /** A dialog has closed. */
  readonly onClose?: () => void;
}

/** Buttons for what this user can do about a request. */
export function RequestActions({ row, templateVersion, onClose }: RequestActionsProps) {
  const { start } = useApp();
  const [act, setAct] = useState<Act>();
  const acts = row.requester === start.user ? ownActs(row) : othersActs(row, templateVersion);
  const close = (): void => {
    setAct(undefined);
    onClose?.();
  };
  const { namespace, type, name } = row;
  return (
    <div class="actions">
      {acts.map((one) => (
        <button key={one.verb} type="button" class={one.isMain ? 'main' : undefined} onClick={() => setAct(one)}>
          {one.verb}
        </button>
      ))}
      {act && (
        <CommandDialog
          {...act}
          title={`${act.verb} ${act.flags?.['about'] ?? ''} ${name}`}
          call={{ command: act.command, namespace, args: [`${type}/${name}`], flags: act.flags ?? {} }}
          onClose={close}
        />
      )}
    </div>
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

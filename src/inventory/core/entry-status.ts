import type { ComponentState, ComponentStatus } from '../../api/inventory/cluster-inventory.ts';
import type { MissingInput } from '../../api/inventory/fields.ts';
import { entryConditions, maxEntryBytes } from '../../api/inventory/names.ts';
import { formatTime } from '../../kit/clock.ts';
import type { Row } from './step.ts';

export type Rows = ReadonlyMap<string, Row>;

/** A condition, but for the time and generation that whoever writes it adds. */
export interface Finding {
  readonly type: string;
  readonly status: 'True' | 'False';
  readonly reason: string;
  readonly message: string;
}

/** `status.components`: by name, with `since` kept for as long as the state stays the same. */
export function componentRows(rows: Rows, before: readonly ComponentStatus[], nowMs: number): ComponentStatus[] {
  return [...rows]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, { state, reason, message, missing, observedInputs }]) => {
      const old = before.find((row) => row.name === name);
      return {
        name,
        state,
        ...(reason === undefined ? {} : { reason: reason.slice(0, 64) }),
        ...(message === undefined ? {} : { message: message.slice(0, 1024) }),
        ...(missing.length === 0 ? {} : { missing: [...missing] }),
        ...(observedInputs === undefined ? {} : { observedInputs }),
        since: old?.state === state ? old.since : formatTime(nowMs),
      };
    });
}

/** What is the matter, the worst first: the reason of Ready. */
const worstFirst: readonly ComponentState[] = ['Failed', 'Retrying', 'NotReady', 'Progressing', 'Deleting'];

/** Whether every component that applies is Done with the inputs of now, and what is missing if not. */
export function readyOf(rows: Rows, entry: { readonly bytes: number; readonly deleting: boolean }): Finding {
  const no = (reason: string, message: string): Finding => ({
    type: entryConditions.ready,
    status: 'False',
    reason,
    message,
  });
  const counted = [...rows].filter(([, { state }]) => state !== 'NotApplicable').sort(([a], [b]) => (a < b ? -1 : 1));
  const open = worstFirst.flatMap((state) => counted.filter(([, row]) => row.state === state));
  const message = listed(open.map(([name, row]) => `${name}: ${describe(row)}`));
  if (entry.deleting) return no('Deleting', message || 'nothing is left');
  if (entry.bytes > maxEntryBytes) {
    return no(
      'TooLarge',
      `${entry.bytes} bytes; at most ${maxEntryBytes} are run. Keep big things in Secrets and name them here`,
    );
  }
  if (counted.length === 0) return no('NoComponents', 'no registered component is for this entry');
  const worst = open[0]?.[1];
  if (worst) return no(worst.reason === 'Suspended' ? 'Suspended' : worst.state, message);
  return { type: entryConditions.ready, status: 'True', reason: 'Done', message: '' };
}

/** Which components' inputs go round in circles. */
export function livelockOf(rows: Rows): Finding {
  const circles = [...rows].flatMap(([name, { livelock }]) => (livelock === undefined ? [] : [`${name}: ${livelock}`]));
  const type = entryConditions.livelock;
  if (circles.length === 0) return { type, status: 'False', reason: 'None', message: '' };
  return { type, status: 'True', reason: 'InputsReturn', message: listed(circles.sort()) };
}

/** Characters of a message of a condition: the rows say all of it. */
const mostListed = 4096;

/** As many as there is room for, the first of them in any case. */
function listed(texts: readonly string[]): string {
  let text = '';
  for (const [index, one] of texts.entries()) {
    const longer = index === 0 ? one : `${text}; ${one}`;
    const left = texts.length - index;
    if (index > 0 && longer.length > mostListed) return `${text}; and ${left} more`;
    text = longer;
  }
  return text;
}

function describe({ state, reason, message, missing }: Row): string {
  const said = message ? `: ${message}` : '';
  if (missing.length > 0) return `waits for ${missing.map(wanted).join(', ')}${said}`;
  return `${state}${reason && reason !== state ? ` (${reason})` : ''}${said}`;
}

function wanted({ path, want, value }: MissingInput): string {
  switch (want) {
    case 'present':
      return path;
    case 'absent':
      return `${path} to go`;
    case 'equals':
      return `${path} to be ${JSON.stringify(value)?.slice(0, 64)}`;
    case 'noReaders':
      return `no reader of ${path} to be left`;
  }
}

import type { MissingInput } from './fields.ts';

/** Of a NotReady whose missing inputs were as wanted, at the start and at the end of the run. */
export const alreadySatisfied = 'MissingAlreadySatisfied';

/** A component in `status.components`, or the outcome of a run. */
interface Described {
  readonly state: string;
  readonly reason: string | undefined;
  readonly message: string | undefined;
  readonly missing: readonly MissingInput[];
}

/**
 * One line. Waiting: the inputs and the message. Running or Suspended: the message. Otherwise: the
 * state, the reason, and the message.
 */
export function describeState(described: Described): string {
  const { state, reason, message } = described;
  if (reason === 'Suspended' && message) return message;
  const sentence = sentenceOf(described);
  if (sentence !== undefined) return sentence;
  const detail = detailOf(described);
  return `${state}${reason && reason !== state ? ` (${reason})` : ''}${detail ? `: ${detail}` : ''}`;
}

/** Without the name of the state; empty if neither a reason nor a message says why. */
export function describeReason(described: Described): string {
  const { state, reason } = described;
  const sentence = sentenceOf(described);
  if (sentence !== undefined) return sentence;
  return [reason === state ? undefined : reason, detailOf(described)].filter((text) => text).join(': ');
}

/** Needs no state and no reason before it. */
function sentenceOf({ reason, message, missing }: Described): string | undefined {
  if (reason === 'Running' && message) return message;
  if (missing.length === 0) return undefined;
  const detail = message ? `: ${message}` : '';
  const inputs = missing.map(inputText).join(', ');
  if (reason !== alreadySatisfied) return `waits for ${inputs}${detail}`;
  return missing.every(({ want }) => want === 'present')
    ? `reports ${inputs} as missing, but the entry contained ${missing.length > 1 ? 'them' : 'it'} when the component was called${detail}`
    : `waits for ${inputs}, but this was already so when the component was called${detail}`;
}

const detailOf = ({ reason, message }: Described): string | undefined =>
  message || (reason === undefined ? undefined : reasonTexts[reason]);

/** For reasons without a message. */
const reasonTexts: Readonly<Record<string, string>> = {
  Forced: 'force annotation changed; a run is due or in progress',
  InputsChanged: 'inputs or registration changed; a run is due or in progress',
  Pending: 'the first run is due or in progress',
  RegistrationRefused: 'the condition Accepted of its ComponentReconciler says why',
  TooLarge: 'the entry is too large; its condition Ready has the limit',
};

function inputText({ path, want, value }: MissingInput): string {
  switch (want) {
    case 'present':
      return path;
    case 'absent':
      return `${path} to be absent`;
    case 'equals':
      return `${path} to be ${JSON.stringify(value)?.slice(0, 64)}`;
    case 'noReaders':
      return `${path} to have no readers`;
  }
}

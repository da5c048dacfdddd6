import type { MissingInput } from '../../api/inventory/fields.ts';
import type { KeyStatus } from '../core/key-state.ts';
import { alreadySatisfied } from '../core/steps/wanted.ts';

interface Described extends Pick<KeyStatus, 'reason' | 'message' | 'missing'> {
  readonly state: string;
}

/** The state of a component, or the outcome of a run, in one line: what it waits for, or its reason, and its message. */
export function describeState({ state, reason, message, missing }: Described): string {
  const said = message || (reason === undefined ? undefined : texts[reason]);
  const detail = said ? `: ${said}` : '';
  const inputs = missing.map(inputText).join(', ');
  if (reason === alreadySatisfied) {
    return missing.every(({ want }) => want === 'present')
      ? `reports ${inputs} as missing, but it was not missing when the component was called${detail}`
      : `waits for ${inputs}, but that held when the component was called${detail}`;
  }
  if (missing.length > 0) return `waits for ${inputs}${detail}`;
  return `${state}${reason && reason !== state ? ` (${reason})` : ''}${detail}`;
}

/** What the reasons mean that have no message. A state with such a reason ends without the component. */
const texts: Readonly<Record<string, string>> = {
  InputsChanged: 'inputs changed, and the run has not ended',
  Pending: 'the first run has not ended',
  Suspended: 'set spec.suspend to false',
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
